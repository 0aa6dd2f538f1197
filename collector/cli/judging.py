"""Commands about judges: `pathgauge judge check` measures how far a judge can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathgauge.collector.cli.command import Command
from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import AsJson, ConfigFile

judge = typer.Typer(
    help=(
        "Check judges against labelled examples.\n\nA judge is a criterion that asks a"
        " model.\n\nExample: `pathgauge judge check labelled.yaml --config pathgauge.yaml`"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@judge.command(cls=Command)
def check(
    examples: Annotated[
        Path | None,
        typer.Argument(
            help="Labelled examples: YAML, JSON or JSON lines. Without it, those that come with"
            " the judges.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    config: ConfigFile = None,
    feedback: Annotated[
        bool,
        typer.Option(
            "--feedback",
            help="Take the invocations in the store that people have answered, instead of a file.",
        ),
    ] = False,
    criterion: Annotated[
        str | None,
        typer.Option(help="Check only this criterion instead of all that ask a model."),
    ] = None,
    injections: Annotated[
        int,
        typer.Option(
            min=0,
            help="Prompt injections to try on each example that should fail.",
        ),
    ] = 20,
    min_kappa: Annotated[
        float | None,
        typer.Option(
            min=-1, max=1, help="Exit with 1 when a judge's kappa with the labels is lower."
        ),
    ] = None,
    max_flips: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Exit with 1 when a larger share of verdicts flips, by order or by injection.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare judges with human labels.

    Use it before you trust a judge, and after each change of its model or prompt. It measures the
    agreement with the labels, and how often the order of the data or a prompt injection flips a
    verdict. Each example costs two requests, plus one for each injection.

    With --feedback, the labels are the answers of people in the store, for invocations whose
    evidence is kept in full.

    Exits with 0 when every judge is good enough. Exits with 1 when one misses --min-kappa or
    --max-flips, or when no example was judged. Exits with 2 when a file or an option cannot be
    used.

    Example: `pathgauge judge check labels.yaml -c pathgauge.yaml --min-kappa 0.6`
    """
    from rich.console import Console

    from pathgauge.collector import config as configuration
    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.output.printing import clean
    from pathgauge.collector.cli.output.progress import shown_progress
    from pathgauge.collector.offline.judge_check.report import (
        Requirements,
        check_lines,
        check_object,
        cost_line,
    )
    from pathgauge.collector.offline.judge_check.run import run, warnings

    if feedback and examples is not None:
        raise typer.BadParameter("expected either a file of examples or --feedback")
    with operator_errors():
        settings = configuration.load(config)
        print_messages(warnings(settings))
        with shown_progress(Console(stderr=True)) as progress:
            checks, cost = run(
                settings, examples, criterion, injections, progress, feedback=feedback
            )
    if as_json:
        output = {"checks": [check_object(one) for one in checks], "spent": cost.to_json()}
        typer.echo(json_line(output))
    else:
        for one in checks:
            typer.echo("\n".join(map(clean, check_lines(one))))
        typer.echo(cost_line(cost))
    requirements = Requirements(min_kappa, max_flips, injections > 0)
    violations = [line for one in checks for line in requirements.violations(one)]
    if not checks:
        violations.append(
            "no example was judged: none has a label for a criterion that was checked"
        )
    print_messages(violations)
    if violations:
        raise typer.Exit(1)

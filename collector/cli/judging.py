"""Commands about judges: whether they are any good."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathgauge.collector import config as configuration
from pathgauge.collector.cli.shared import AsJson, ConfigFile, note, operator_errors

judge = typer.Typer(
    help=(
        "Judges: criteria that ask a model.\n\nExample: `pathgauge judge check labelled.yaml"
        " --config pathgauge.yaml`"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@judge.command()
def check(
    examples: Annotated[
        Path,
        typer.Argument(
            help="Labelled examples: YAML, JSON or JSON lines.", exists=True, dir_okay=False
        ),
    ],
    config: ConfigFile = None,
    criterion: Annotated[
        str | None,
        typer.Option(help="The only criterion to check, instead of all that ask a model."),
    ] = None,
    injections: Annotated[
        int,
        typer.Option(
            min=0,
            help="Texts that try to deceive the judge, for each example that should not pass.",
        ),
    ] = 20,
    min_kappa: Annotated[
        float | None,
        typer.Option(
            min=-1, max=1, help="Fail when a judge agrees less than this with the labels."
        ),
    ] = None,
    max_flips: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Fail when a larger share of verdicts flips, by order or by injections.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask the judges of a configuration about labelled examples: do they agree with people, and
    what deceives them?

    Each example costs two questions, and one more for each injection. Exits with 1 when a judge is
    not as good as demanded.

    Example: `pathgauge judge check labelled.yaml --config pathgauge.yaml --min-kappa 0.6
    --max-flips 0.02`
    """
    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.offline.judge_check.report import (
        Demands,
        check_lines,
        check_object,
        spent_line,
    )
    from pathgauge.collector.offline.judge_check.run import run

    with operator_errors():
        checks, spent = run(configuration.load(config), examples, criterion, injections)
    if as_json:
        typer.echo(
            json_line({"checks": [check_object(one) for one in checks], "spent": spent.told()})
        )
    else:
        for one in checks:
            typer.echo("\n".join(check_lines(one)))
        typer.echo(spent_line(spent))
    demands = Demands(min_kappa, max_flips, injections > 0)
    missed = [line for one in checks for line in demands.missed(one)]
    note(missed)
    if missed:
        raise typer.Exit(1)

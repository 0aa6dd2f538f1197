"""Commands that read trace files: show what the collector understands of them, and score them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import AsJson, ConfigFile, Files

if TYPE_CHECKING:
    from pathgauge.collector.config import Config
    from pathgauge.collector.config.active import ActiveConfig
    from pathgauge.collector.offline.replay import JudgeAll


def invocations(files: Files, config: ConfigFile = None) -> None:
    """Print agent invocations as JSON.

    Use it to see what the collector understands of a trace: agent, input, tool calls, response,
    scenario. One line of JSON for each invocation. The files of a directory are read as one stream.

    Example: `pathgauge invocations traces.json`
    """
    from pathgauge.collector import config as configuration
    from pathgauge.collector.cli.output.json_output import invocation_object, json_line
    from pathgauge.collector.core.evaluations.evaluator import Evaluator
    from pathgauge.collector.core.references import ReferenceSet
    from pathgauge.collector.offline.replay import replay

    with operator_errors():
        keys = configuration.load(config).scenario.keys
        for replayed in replay(files, Evaluator(()), ReferenceSet(), keys):
            print_messages(replayed.notes)
            for evaluation in replayed.evaluations:
                typer.echo(json_line(invocation_object(evaluation.invocation, replayed.source)))


def score(
    files: Files,
    config: ConfigFile = None,
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--references",
            "-r",
            help="Reference files or patterns, instead of those of the configuration.",
        ),
    ] = None,
    criteria: Annotated[
        Path | None,
        typer.Option(
            help="Criteria, as an ADK test_config.json, instead of those of the configuration."
        ),
    ] = None,
    as_json: AsJson = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Show every invocation, expected and actual trajectory side by side.",
        ),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(help="Write a JUnit XML report to this file.")
    ] = None,
) -> None:
    """Score trace files: a gate for CI.

    Use it to check a change of an agent before it is deployed: run the agent, save its traces, and
    compare them with references. Exits with 1 when a score misses its threshold. Without --config
    and --criteria, the criteria are those of ADK: `tool_trajectory_avg_score` 1.0 and
    `response_match_score` 0.8.

    Example: `pathgauge score traces/ --references 'evalsets/*.evalset.json' --junit report.xml`
    """
    from rich.console import Console

    from pathgauge.collector.cli.output.json_output import evaluation_object, json_line
    from pathgauge.collector.cli.output.junit import to_junit
    from pathgauge.collector.cli.output.report import print_details, print_gate, print_reasons
    from pathgauge.collector.config.active import for_gate, resolve
    from pathgauge.collector.offline.gate import judge, scenarios_not_run
    from pathgauge.collector.offline.replay import replay

    with operator_errors():
        settings = for_gate(config, references or (), criteria)
        active = resolve(settings)
        print_messages(active.warnings)
        with _judges(settings, active) as judge_all:
            keys = settings.scenario.keys
            replayed = list(replay(files, active.evaluator, active.references, keys, judge_all))
        gate = judge(replayed)
        if junit is not None:
            junit.write_bytes(to_junit(gate))
    for one in replayed:
        print_messages(one.notes)
    absent = scenarios_not_run(replayed, active.references)
    if absent:
        print_messages([f"scenarios with a reference, but without a run: {', '.join(absent)}"])
    if as_json:
        for one in replayed:
            for evaluation in one.evaluations:
                typer.echo(json_line(evaluation_object(evaluation, one.source)))
    else:
        if details:
            print_details(replayed, Console())
        print_gate(gate, Console())
    print_reasons(gate, replayed, Console(stderr=True))
    if not gate.passed:
        raise typer.Exit(1)


def _judges(config: Config, active: ActiveConfig) -> AbstractContextManager[JudgeAll | None]:
    if config.judge is None:
        return nullcontext()
    from pathgauge.collector.offline.judges import judges_of

    return judges_of(config.judge, config.folder, active)

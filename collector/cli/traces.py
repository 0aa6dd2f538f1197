"""Commands that read trace files, and tables of predictions: show what the collector understands
of them, and score them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathgauge.collector.cli.console import print_messages, writable, writable_file, write_result
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import AsJson, ConfigFile, Files

if TYPE_CHECKING:
    from rich.console import Console

    from pathgauge.collector.config import Config
    from pathgauge.collector.config.active import ActiveConfig
    from pathgauge.collector.offline.gate import Gate
    from pathgauge.collector.offline.progress import Progress
    from pathgauge.collector.offline.replay import Replayed
    from pathgauge.collector.offline.tables.scoring import JudgeAll


def invocations(files: Files, config: ConfigFile = None) -> None:
    """Print agent invocations as JSON.

    Use it to see what the collector understands of a trace: agent, input, tool calls, response,
    scenario. One line of JSON for each invocation. The files of a directory are read as one stream.

    Example: `pathgauge invocations traces.json`
    """
    from pathgauge.collector import config as configuration
    from pathgauge.collector.cli.output.json_output import invocation_object, json_line
    from pathgauge.collector.config.dialect_tables import dialects_of
    from pathgauge.collector.core.evaluations.evaluator import Evaluator
    from pathgauge.collector.core.references import ReferenceSet
    from pathgauge.collector.offline.replay import replay

    with operator_errors():
        settings = configuration.load(config)
        dialects = dialects_of(settings.dialects)
        keys = settings.scenario.keys
        for replayed in replay(files, Evaluator(()), ReferenceSet(), keys, dialects=dialects):
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
            help=(
                "Show every invocation, failures first: the answers, and both trajectories side by"
                " side."
            ),
        ),
    ] = False,
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Show only the invocations that failed, with all details."),
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option(help="Write a JUnit XML report to this file.", callback=writable_file),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write a report to this file: one HTML page, failures first.",
            callback=writable_file,
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Write a report in Markdown to this file, such as $GITHUB_STEP_SUMMARY; - prints it"
                " instead of the table."
            ),
            callback=writable,
        ),
    ] = None,
    min_coverage: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help=(
                "Exit with 1 when a criterion with a threshold scores a smaller share of the"
                " invocations that it applies to."
            ),
        ),
    ] = 1.0,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Exit with 1 when a scenario that matches this pattern was not run, such as"
                " 'refund*'; `all`: every scenario with a reference. Can be repeated. Default:"
                " scenarios with `required: true` in their reference."
            )
        ),
    ] = None,
    allow_incomplete: Annotated[
        bool,
        typer.Option(
            "--allow-incomplete",
            help="Pass although a trace file was cut off, or a part of it cannot be read.",
        ),
    ] = False,
) -> None:
    """Score traces or tables: a gate for CI.

    Use it to check a change of an agent before it is deployed: run the agent, save its traces, and
    compare them with references. A table of predictions (JSON, JSON lines or CSV) has a row for
    each invocation, with a column `predicted_trajectory`. Without --config and --criteria, the
    criteria are those of ADK: `tool_trajectory_avg_score` 1.0 and `response_match_score` 0.8.

    Exits with 0 when the gate passes. Exits with 1 when it does not: a score missed its threshold,
    a scorer failed, too few invocations were scored (--min-coverage), a scenario was not run
    (--require), a trace file was cut off, or nothing was compared with a threshold. Exits with 2
    when a file or an option cannot be used.

    Example: `pathgauge score traces/ --references 'evalsets/*.evalset.json' --junit report.xml`
    """
    from rich.console import Console

    from pathgauge.collector.cli.output.progress import shown_progress
    from pathgauge.collector.cli.output.report import print_reasons
    from pathgauge.collector.config.active import for_gate, resolve
    from pathgauge.collector.config.dialect_tables import dialects_of
    from pathgauge.collector.config.doubts import missing_references
    from pathgauge.collector.offline.coverage import references_of, required_scenarios
    from pathgauge.collector.offline.gate import Requirements, judge
    from pathgauge.collector.offline.replay import replay

    printed = markdown is not None and str(markdown) == "-"
    if printed and (as_json or details or failed):
        raise typer.BadParameter("--markdown - cannot be combined with --json, --details, --failed")
    out, err = Console(), Console(stderr=True)
    with operator_errors():
        with redirect_stdout(sys.stderr):  # what plug-ins print is no part of the result
            settings = for_gate(config, references or (), criteria)
            active = resolve(settings)
            missing = tuple(missing_references(active.evaluator.criteria, active.references))
            print_messages([warning for warning in active.warnings if warning not in missing])
            known = tuple(active.references)  # a wrong pattern is found before judges are asked
            required = required_scenarios(known, require if known else None)
            with shown_progress(err) as progress, _judges(settings, active, progress) as judge_all:
                keys = settings.scenario.keys
                replayed = list(
                    replay(
                        files,
                        active.evaluator,
                        active.references,
                        keys,
                        judge_all,
                        progress=progress,
                        dialects=dialects_of(settings.dialects),
                    )
                )
        if not known:
            known = references_of(replayed)  # of tables
            print_messages([] if known else missing)
            required = required_scenarios(known, require)
        requirements = Requirements(min_coverage, required, complete=not allow_incomplete)
        gate = judge(replayed, active.evaluator, active.references, requirements)
        _write_reports(replayed, gate, junit, html, markdown)
    _print_notes(replayed, gate, active)
    if not printed:
        _print_result(replayed, gate, out, as_json=as_json, details=details, failed=failed)
    print_reasons(gate, err)
    if not gate.passed:
        raise typer.Exit(1)


def _print_notes(replayed: Sequence[Replayed], gate: Gate, active: ActiveConfig) -> None:
    from pathgauge.collector.offline.coverage import without_session
    from pathgauge.collector.offline.divided import divided

    notes = dict.fromkeys(note for one in replayed for note in one.notes)
    print_messages(note for note in notes if note not in gate.unread)
    print_messages(list(divided(replayed)))
    if lost := without_session(replayed, active.evaluator):
        print_messages([lost])
    if gate.not_run:
        absent = ", ".join(gate.not_run)
        print_messages([f"scenarios with a reference, but without an invocation: {absent}"])


def _print_result(
    replayed: Sequence[Replayed],
    gate: Gate,
    out: Console,
    *,
    as_json: bool,
    details: bool,
    failed: bool,
) -> None:
    from pathgauge.collector.cli.output.details import failures, failures_first, print_details
    from pathgauge.collector.cli.output.gate_json import result_lines
    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.output.report import print_gate

    if as_json:
        for line in result_lines(replayed, gate, failed_only=failed):
            typer.echo(json_line(line))
        return
    if failed:
        print_details(failures(replayed, gate), out)
    elif details:
        print_details(failures_first(replayed, gate), out)
    print_gate(gate, out)


def _write_reports(
    replayed: Sequence[Replayed],
    gate: Gate,
    junit: Path | None,
    html: Path | None,
    markdown: Path | None,
) -> None:
    if junit is not None:
        from pathgauge.collector.cli.output.junit import to_junit

        junit.write_bytes(to_junit(gate))
    if html is not None:
        from pathgauge.collector.cli.output.html_report import to_html

        html.write_bytes(to_html(replayed, gate))
    if markdown is not None:
        from pathgauge.collector.cli.output.markdown_report import to_markdown

        text = to_markdown(replayed, gate)
        write_result(text, None if str(markdown) == "-" else markdown)


def _judges(
    config: Config, active: ActiveConfig, progress: Progress
) -> AbstractContextManager[JudgeAll | None]:
    if config.judge is None:
        return nullcontext()
    from pathgauge.collector.offline.judges import judges_of

    return judges_of(config.judge, config.folder, active, progress)

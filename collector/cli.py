"""The command line: arguments come in, each command is a few lines over the module that does the work.

Exit status: 0 done, 1 a gate did not pass, 2 the operator has to change something.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from collector import config as configuration
from collector.documents import ConfigError
from collector.plugins import PluginError
from collector.receivers.files import UnreadableFileError
from collector.rules.choices import ChoiceError

app = typer.Typer(
    help="Score live LLM agents from their OpenTelemetry traces, and export the scores to Prometheus.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)

ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="Configuration file; without it the defaults are in force.")]
InsecureBind = Annotated[
    bool,
    typer.Option("--insecure-bind", help="Listen beyond this machine without asking anybody for credentials, as `insecure_bind` does."),
]
Files = Annotated[
    list[Path],
    typer.Argument(help="Trace files, or directories that hold them: OTLP, Jaeger JSON, Tempo JSON; plain or gzip.", exists=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
ReferenceFiles = Annotated[list[Path], typer.Argument(help="Reference files: YAML, JSON, JSON lines or CSV.", exists=True, dir_okay=False)]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of standard output.")]
ReferenceFormat = Literal["auto", "adk", "vertex", "graph", "messages", "pathgauge"]


@contextmanager
def _operator_errors(when_in_use: str = "") -> Iterator[None]:
    """Word mistakes of operators as plain lines, and exit with 2. `when_in_use` is advice for a port that is taken."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output, such as `head`, has had enough; typer ends quietly
    except (ChoiceError, ConfigError, PluginError, UnreadableFileError, OSError) as error:
        _note(_words(error).splitlines())
        if when_in_use and isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            _note([when_in_use])
        raise typer.Exit(2) from error


def _words(error: Exception) -> str:
    """The message, without the number that Python puts before those of the system."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _note(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(f"pathgauge: {line}", err=True)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


@app.command()
def serve(config: ConfigFile = None, insecure_bind: InsecureBind = False) -> None:
    """Receive OTLP, score every agent invocation, and serve the scores to Prometheus, until SIGTERM.

    SIGHUP reads the configuration again; changed reference files are noticed by themselves.

    Example: `pathgauge serve --config pathgauge.yaml`
    """
    from collector import logs
    from collector.service import Service, run

    with _operator_errors():
        settings = configuration.load(config)
        logs.configure(settings.logging.level, settings.logging.format)
        asyncio.run(run(Service(settings, config, insecure_bind=insecure_bind)))


@app.command()
def demo(
    port_offset: Annotated[int, typer.Option(min=0, max=50_000, help="Added to every port, where the usual ones are taken.")] = 0,
    regress_after: Annotated[float, typer.Option(min=0, help="Seconds until one agent regresses.")] = 30.0,
    repair_after: Annotated[float, typer.Option(min=0, help="Seconds from then until it is repaired.")] = 60.0,
) -> None:
    """Run the collector on loopback with example agents that really export OTLP, and show their scores, until Ctrl-C.

    Example: `pathgauge demo --port-offset 10000`
    """
    from collector import logs
    from collector.demo.session import show

    logs.configure("warning")
    with _operator_errors(when_in_use="take other ports with --port-offset, such as --port-offset 10000"):
        asyncio.run(show(port_offset, regress_after, repair_after, Console()))


@app.command()
def invocations(files: Files, config: ConfigFile = None) -> None:
    """Print what the collector understands of trace files: one JSON object a line for each agent invocation.

    The files of a directory are read as one stream.

    Example: `pathgauge invocations traces.json`
    """
    from collector.evaluator import Evaluator
    from collector.offline import replay
    from collector.references import ReferenceSet
    from collector.rendering import invocation_object, json_line

    with _operator_errors():
        keys = configuration.load(config).scenario.keys
        for replayed in replay(files, Evaluator(()), ReferenceSet(), keys):
            _note(replayed.notes)
            for evaluation in replayed.evaluations:
                typer.echo(json_line(invocation_object(evaluation.invocation, replayed.source)))


@app.command()
def score(
    files: Files,
    config: ConfigFile = None,
    references: Annotated[
        list[str] | None, typer.Option("--references", "-r", help="Reference files or patterns, instead of those of the configuration.")
    ] = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria, as an ADK test_config.json; instead of those of the configuration.")
    ] = None,
    as_json: AsJson = False,
    details: Annotated[bool, typer.Option("--details", help="Show every invocation with both trajectories, side by side.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit XML report to this file.")] = None,
) -> None:
    """Score trace files against references, and fail when a threshold is missed: a gate for CI.

    Without configuration and criteria those of ADK are in force: `tool_trajectory_avg_score` 1.0 and `response_match_score` 0.8.

    Example: `pathgauge score traces/ --references 'evalsets/*.evalset.json' --junit report.xml`
    """
    from collector.gate import judge, not_run
    from collector.junit import to_junit
    from collector.offline import replay
    from collector.rendering import evaluation_object, json_line
    from collector.report import print_details, print_gate, print_reasons
    from collector.setup import for_gate, resolve

    with _operator_errors():
        settings = for_gate(config, references or (), criteria)
        setup = resolve(settings)
        _note(setup.warnings)
        replayed = list(replay(files, setup.evaluator, setup.references, settings.scenario.keys))
        gate = judge(replayed)
        if junit is not None:
            junit.write_bytes(to_junit(gate))
    for one in replayed:
        _note(one.notes)
    absent = not_run(replayed, setup.references)
    if absent:
        _note([f"scenarios with a reference, but without a run: {', '.join(absent)}"])
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


@app.command("import")
def import_(
    format: Annotated[ReferenceFormat, typer.Argument(help="The format of the files; `auto` tells it from the content.")],
    files: ReferenceFiles,
    output: Output = None,
    scenario_prefix: Annotated[str, typer.Option(help="Put before every scenario id.")] = "",
) -> None:
    """Write references of another format in the native one, and say on standard error what was found and what was ignored.

    Formats: ADK evalsets, datasets of Vertex AI, LangGraph trajectories, and chat messages of OpenAI and LangChain.

    Example: `pathgauge import auto eval_dataset.jsonl --output references/home.yaml`
    """
    from collector.references.files import read_all
    from collector.references.importing import gather
    from collector.references.writing import to_yaml

    with _operator_errors():
        imported = gather(read_all(files, None if format == "auto" else format), scenario_prefix)
        _write(to_yaml(imported.references), output)
    _note(imported.summary)


@app.command()
def export(
    files: ReferenceFiles,
    format: Annotated[Literal["adk"], typer.Option(help="The format to write: an ADK evalset.")] = "adk",
    output: Output = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Leave out what the format cannot say, instead of refusing it.")] = False,
) -> None:
    """Write references of any format as an evalset for google-adk.

    Example: `pathgauge export references/home.yaml --output home.evalset.json`
    """
    from collector.references.export_adk import evalset, to_json
    from collector.references.files import read_all

    with _operator_errors():
        entries = [entry for read in read_all(files).values() for entry in read.entries]
        exported = evalset((entry.reference for entry in entries), (output or files[0]).name.split(".")[0])
        _note(exported.left_out)
        if exported.left_out and not lossy:
            _note(["nothing was written; --lossy leaves out what ADK cannot express"])
            raise typer.Exit(2)
        _write(to_json(exported.data), output)


@app.command()
def record(
    files: Files,
    config: ConfigFile = None,
    scenario: Annotated[str | None, typer.Option(help="The scenario id of all invocations, instead of their own.")] = None,
    output: Output = None,
    without_arguments: Annotated[bool, typer.Option("--without-arguments", help="Expect calls with any arguments.")] = False,
    without_response: Annotated[bool, typer.Option("--without-response", help="Expect no particular response.")] = False,
    allow_failed: Annotated[bool, typer.Option("--allow-failed", help="Record failed invocations too.")] = False,
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="Keep other trajectories of a scenario as alternatives to its first.")
    ] = False,
) -> None:
    """Make references of good traces: what the agent did in them becomes what is expected of it.

    Invocations with a scenario id are recorded, those of one conversation as its turns.

    Example: `pathgauge record traces.json --output references/refund.yaml`
    """
    from collector.evaluator import Evaluator
    from collector.offline import replay
    from collector.recording import Wanted, record
    from collector.references import ReferenceSet
    from collector.references.writing import to_yaml

    with _operator_errors():
        replayed = list(replay(files, Evaluator(()), ReferenceSet(), configuration.load(config).scenario.keys))
        for one in replayed:
            _note(one.notes)
        recording = record(replayed, Wanted(scenario, not without_arguments, not without_response, allow_failed, alternatives))
        _write(to_yaml(recording.references), output)
    _note(recording.notes)


@app.command()
def validate(config: ConfigFile = None, insecure_bind: InsecureBind = False) -> None:
    """Check a configuration and everything that it names, without running it.

    Example: `pathgauge validate --config pathgauge.yaml`
    """
    from collector.auth.access import load_access
    from collector.setup import resolve
    from collector.sinks.otlp_exporter import build_exporter

    with _operator_errors():
        settings = configuration.load(config)
        setup = resolve(settings)
        access = load_access(settings, insecure_bind=insecure_bind)
        if settings.exporters.otlp is not None:
            build_exporter(settings, settings.exporters.otlp)
    _note((*setup.warnings, *access.warnings))
    names = ", ".join(criterion.name for criterion in setup.evaluator.criteria)
    typer.echo(f"{config or 'defaults'}: ok, {len(setup.references)} references, criteria: {names or 'none'}")


@app.command()
def purge(
    config: ConfigFile = None,
    trace: Annotated[str | None, typer.Option(help="A trace, by its id in hexadecimal digits; of all tenants.")] = None,
    scenario: Annotated[str | None, typer.Option(help="The traces that have a result of this scenario.")] = None,
    before: Annotated[str | None, typer.Option(help="What is older: an age such as 7d, or a date such as 2026-11-01 (UTC).")] = None,
) -> None:
    """Remove telemetry and results from the store for good, whether a collector runs on it or not.

    Nothing of it stays in the files of the store. Counters stay, they hold no content.

    Example: `pathgauge purge --config pathgauge.yaml --trace 4bf92f3577b34da6a3ce929d0e0e4736`
    """
    import time

    from collector import logs
    from collector.erasure import SelectionError, erase, report, select

    with _operator_errors():
        settings = configuration.load(config)
        if settings.store is None:
            text = "found memory, expected a store on disk: what is in memory ends with the process"
            raise ConfigError([settings.problem(("store",), text)])
        try:
            selection = select(trace, scenario, before, time.time())
        except SelectionError as error:
            _note([str(error)])
            raise typer.Exit(2) from error
        logs.configure("warning")
        folder = settings.folder / settings.store.path
        purged = erase(folder, selection)
    typer.echo(f"{folder}: {report(purged)}")
    if purged.unfinished is not None:
        _note([f"its bytes may still be in the files ({purged.unfinished}); purge again when that is mended"])
        raise typer.Exit(2)


@app.command()
def scorers(as_json: AsJson = False) -> None:
    """List all scorers with their options.

    Example: `pathgauge scorers --json`
    """
    from dataclasses import asdict

    from collector.catalogue import catalogue
    from collector.rendering import json_line
    from collector.report import print_catalogue

    entries = list(catalogue())
    if as_json:
        typer.echo(json_line([asdict(entry) for entry in entries]))
    else:
        print_catalogue(entries, Console())


@app.command()
def rules(
    output: Output = None,
    job: Annotated[str, typer.Option(help="The job under which Prometheus scrapes the collectors.")] = "pathgauge",
    severity: Annotated[
        list[str] | None,
        typer.Option(help="Another severity, of an alert or in place of one: PathgaugeScoreRegression=info, critical=page."),
    ] = None,
    for_: Annotated[
        list[str] | None,
        typer.Option("--for", help="How long something must be true: of all alerts (5m), or of one (PathgaugeStoreNotOk=1m)."),
    ] = None,
    keep_firing_for: Annotated[str, typer.Option(help="How long alerts about scores go on when what they say ceases to be true.")] = "10m",
    interval: Annotated[str, typer.Option(help="How often the rules are evaluated.")] = "30s",
    min_samples: Annotated[int, typer.Option(min=1, help="Fewer scores or invocations than these say nothing.")] = 20,
    sigmas: Annotated[float, typer.Option(min=0, help="By how many standard errors a mean must be off before that is no chance.")] = 4.0,
    min_drop: Annotated[float, typer.Option(min=0, max=1, help="A smaller fall, on a scale from 0 to 1, is no regression.")] = 0.05,
    runbook_url: Annotated[str, typer.Option(help="Where the pages of docs/runbooks are published.")] = "docs/runbooks",
    dashboard_url: Annotated[str | None, typer.Option(help="A dashboard that every alert links to.")] = None,
) -> None:
    """Write the recording and alerting rules for Prometheus. One file serves every configuration.

    Example: `pathgauge rules --severity critical=page --runbook-url https://wiki.example/pathgauge --output rules.yml`
    """
    from collector.rules import Choices, choose, to_yaml

    with _operator_errors():
        chosen = choose(
            Choices(job, runbook_url, dashboard_url, interval, keep_firing_for, min_samples, sigmas, min_drop), severity or (), for_ or ()
        )
        _write(to_yaml(chosen), output)

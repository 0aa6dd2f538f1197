"""The command line: arguments come in, each command is a few lines over the module that does the work.

Exit status: 0 done, 1 a gate did not pass, 2 the operator has to change something.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from collector import config as configuration
from collector.documents import ConfigError
from collector.plugins import PluginError
from collector.receivers.files import UnreadableFileError

app = typer.Typer(
    help="Score live LLM agents from their OpenTelemetry traces, and export the scores to Prometheus.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)

ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="Configuration file; without it the defaults are in force.")]
Files = Annotated[
    list[Path],
    typer.Argument(help="Trace files, or directories that hold them: OTLP, Jaeger JSON, Tempo JSON; plain or gzip.", exists=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@contextmanager
def _operator_errors(when_in_use: str = "") -> Iterator[None]:
    """Word mistakes of operators as plain lines, and exit with 2. `when_in_use` is advice for a port that is taken."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output, such as `head`, has had enough; typer ends quietly
    except (ConfigError, PluginError, UnreadableFileError, OSError) as error:
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


@app.command()
def serve(config: ConfigFile = None) -> None:
    """Receive OTLP, score every agent invocation, and serve the scores to Prometheus, until SIGTERM.

    SIGHUP reads the configuration again; changed reference files are noticed by themselves.

    Example: `pathgauge serve --config pathgauge.yaml`
    """
    from collector import logs
    from collector.service import Service, run

    with _operator_errors():
        settings = configuration.load(config)
        logs.configure(settings.logging.level, settings.logging.format)
        asyncio.run(run(Service(settings, config)))


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
    from collector.report import print_gate, print_reasons
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
        print_gate(gate, Console())
    print_reasons(gate, replayed, Console(stderr=True))
    if not gate.passed:
        raise typer.Exit(1)


@app.command()
def validate(config: ConfigFile = None) -> None:
    """Check a configuration and everything that it names, without running it.

    Example: `pathgauge validate --config pathgauge.yaml`
    """
    from collector.setup import resolve

    with _operator_errors():
        setup = resolve(configuration.load(config))
    _note(setup.warnings)
    names = ", ".join(criterion.name for criterion in setup.evaluator.criteria)
    typer.echo(f"{config or 'defaults'}: ok, {len(setup.references)} references, criteria: {names or 'none'}")


@app.command()
def scorers(as_json: AsJson = False) -> None:
    """List all scorers with their options.

    Example: `pathgauge scorers --json`
    """
    from dataclasses import asdict

    from collector.plugins import catalogue
    from collector.rendering import json_line
    from collector.report import print_catalogue

    entries = list(catalogue())
    if as_json:
        typer.echo(json_line([asdict(entry) for entry in entries]))
    else:
        print_catalogue(entries, Console())

"""The command line. Each command parses its options and calls the module that does the work.

Exit status: 0 success, 1 a gate failed, 2 the operator has to correct something, 3 `verdict` is
undecided.

Commands import what they need when they run, so that `--help` is quick. Help is plain text for
the same reason: importing rich takes longer than everything else.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from pathgauge.collector.cli.backfill import backfill
from pathgauge.collector.cli.command import Command
from pathgauge.collector.cli.console import escape_what_cannot_be_shown
from pathgauge.collector.cli.curating import curate, lint
from pathgauge.collector.cli.explain import explain
from pathgauge.collector.cli.judging import judge
from pathgauge.collector.cli.learn import learn
from pathgauge.collector.cli.listing import dashboards, rules, scorers
from pathgauge.collector.cli.mcp import mcp
from pathgauge.collector.cli.references import export, import_, record
from pathgauge.collector.cli.results import results
from pathgauge.collector.cli.running import demo, migrate, purge, serve, validate
from pathgauge.collector.cli.traces import invocations, score
from pathgauge.collector.cli.verdict import verdict

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pathgauge {version('pathgauge')}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Score live LLM agents from their OpenTelemetry traces.

    pathgauge exports the scores to Prometheus.
    """
    # gRPC logs in a format of its own, and senders can cause some of its lines at will. It reads
    # this variable when it is imported, which some command does.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    escape_what_cannot_be_shown()


for _command in (
    serve,
    demo,
    invocations,
    learn,
    score,
    explain,
    verdict,
    backfill,
    import_,
    export,
    record,
    curate,
    lint,
    validate,
    migrate,
    purge,
    scorers,
    rules,
    dashboards,
    mcp,
):
    app.command(_command.__name__.rstrip("_"), cls=Command)(_command)
app.add_typer(results, name="results")
app.add_typer(judge, name="judge")

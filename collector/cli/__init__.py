"""The command line: arguments come in, each command is a few lines over the module that does the
work.

Exit status: 0 done, 1 a gate did not pass, 2 the operator has to change something.
"""

from __future__ import annotations

import typer

from pathgauge.collector.cli.judging import judge
from pathgauge.collector.cli.listing import rules, scorers
from pathgauge.collector.cli.references import export, import_, record
from pathgauge.collector.cli.running import demo, purge, serve, validate
from pathgauge.collector.cli.shared import ReferenceFormat
from pathgauge.collector.cli.traces import invocations, score

__all__ = ["ReferenceFormat", "app"]

app = typer.Typer(
    help=(
        "Score live LLM agents from their OpenTelemetry traces, and export the scores to"
        " Prometheus."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)

for _command in (
    serve,
    demo,
    invocations,
    score,
    import_,
    export,
    record,
    validate,
    purge,
    scorers,
    rules,
):
    app.command(_command.__name__.rstrip("_"))(_command)
app.add_typer(judge, name="judge")

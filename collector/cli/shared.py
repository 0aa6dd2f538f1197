"""What commands share: options, where output goes, and the words for mistakes of operators."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from pathgauge.collector.config.plugins import PluginError
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.offline.trace_files import UnreadableFileError
from pathgauge.collector.sinks.prometheus.rules.options import ChoiceError

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="Configuration file; without it the defaults are in force."
    ),
]
InsecureBind = Annotated[
    bool,
    typer.Option(
        "--insecure-bind",
        help=(
            "Listen beyond this machine without asking anybody for credentials, as `insecure_bind`"
            " does."
        ),
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(
        help=(
            "Trace files, or directories that hold them: OTLP, Jaeger JSON, Tempo JSON; plain or"
            " gzip."
        ),
        exists=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
ReferenceFiles = Annotated[
    list[Path],
    typer.Argument(
        help="Reference files: YAML, JSON, JSON lines or CSV.", exists=True, dir_okay=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file instead of standard output."),
]
ReferenceFormat = Literal["auto", "adk", "vertex", "graph", "messages", "pathgauge"]


@contextmanager
def operator_errors(when_in_use: str = "") -> Iterator[None]:
    """Word mistakes of operators as plain lines, and exit with 2. `when_in_use` is advice for a
    port that is taken.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output, such as `head`, has had enough; typer ends quietly
    except (ChoiceError, ConfigError, PluginError, UnreadableFileError, OSError) as error:
        note(_words(error).splitlines())
        if when_in_use and isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            note([when_in_use])
        raise typer.Exit(2) from error


def _words(error: Exception) -> str:
    """The message, without the number that Python puts before those of the system."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def note(lines: Iterable[str]) -> None:
    """Tell people something on standard error."""
    for line in lines:
        typer.echo(f"pathgauge: {line}", err=True)


def write(text: str, output: Path | None) -> None:
    """Write to a file, or to standard output."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")

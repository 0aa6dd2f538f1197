"""Option and argument types that several commands share.

Typer reads them when the commands are defined, so this module imports nothing heavy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathgauge.collector.cli.console import writable_or_printed


def existing(paths: list[Path] | None) -> list[Path] | None:
    """Refuse paths that do not exist. Typer's own check has no exception for standard input."""
    for path in paths or ():
        if str(path) != "-" and not path.exists():
            raise typer.BadParameter(f"path {str(path)!r} does not exist.")
    return paths


ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Configuration file. Without it, all defaults apply."),
]
InsecureBind = Annotated[
    bool,
    typer.Option(
        "--insecure-bind",
        help=(
            "Allow endpoints that other machines can reach without credentials. Same as the"
            " configuration key `insecure_bind`."
        ),
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(
        help=(
            "Trace files, or directories of trace files: OTLP, Jaeger JSON or Tempo JSON; plain or"
            " gzip. - is standard input."
        ),
        callback=existing,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ReferenceFiles = Annotated[
    list[Path],
    typer.Argument(
        help="Reference files: YAML, JSON, JSON lines or CSV.", exists=True, dir_okay=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write to this file instead of standard output.",
        callback=writable_or_printed,
    ),
]
StoreConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="Configuration of the collector whose store is read. Without it, all defaults apply.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        help=(
            "Ask the collector at this address, such as http://localhost:9464, instead of reading"
            " a store."
        )
    ),
]
TraceTenant = Annotated[
    str | None,
    typer.Option("--tenant", help="The tenant of the trace, if several have one with this id."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="File with the token for --url. Without it, the token is that of PATHGAUGE_TOKEN.",
        exists=True,
        dir_okay=False,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        help="Certificates that are trusted for --url, instead of those of the system.",
        exists=True,
        dir_okay=False,
    ),
]

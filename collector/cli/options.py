"""Option and argument types that several commands share.

Typer reads them when the commands are defined, so this module imports nothing heavy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _existing(paths: list[Path]) -> list[Path]:
    """Refuse paths that do not exist. Typer's own check has no exception for standard input."""
    for path in paths:
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
        callback=_existing,
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
    typer.Option("--output", "-o", help="Write to this file instead of standard output."),
]

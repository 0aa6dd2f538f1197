"""Where commands write: results to standard output or a file, messages to standard error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer


def print_messages(lines: Iterable[str]) -> None:
    """Print notes, warnings or errors on standard error."""
    for line in lines:
        typer.echo(f"pathgauge: {line}", err=True)


def write_result(text: str, output: Path | None) -> None:
    """Write `text` to the file, or to standard output when `output` is None."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


def refuse_to_replace(output: Path | None, force: bool) -> None:
    """End the program if the output file exists and `force` is false."""
    if output is not None and output.exists() and not force:
        print_messages([f"{output}: found a file, expected none, or --force to replace it"])
        raise typer.Exit(2)

"""Where commands write: results to standard output or a file, messages to standard error."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import typer

_NOT_REPLACEABLE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS, errno.EXDEV})
"""A file may be writable, and its folder not, or it is mounted by itself into a container."""


def print_messages(lines: Iterable[str]) -> None:
    """Print notes, warnings or errors on standard error."""
    for line in lines:
        typer.echo(f"pathgauge: {line}", err=True)


def escape_what_cannot_be_shown() -> None:
    """Have standard output show a character that its encoding lacks as `\\u5b8c`, as standard error
    does. An exception would end a command that has done its work.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # tests replace it
        sys.stdout.reconfigure(errors="backslashreplace")


def write_result(text: str, output: Path | None) -> None:
    """Write `text` to the file, or to standard output when `output` is None, as UTF-8. A file is
    never half written: a running collector reads references as soon as they change.
    """
    if output is None:
        typer.echo(text.encode(), nl=False)
    elif output.exists() and not output.is_file():  # a pipe or a device
        output.write_text(text, encoding="utf-8")
    else:
        _replace(output, text)


def _replace(output: Path, text: str) -> None:
    file = output.resolve()
    # No pattern of references matches the name.
    new = file.with_name(f".{file.name[:200]}.{os.getpid()}.new")
    try:
        new.write_text(text, encoding="utf-8")
        if file.exists():
            shutil.copymode(file, new)
        new.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        if error.errno not in _NOT_REPLACEABLE or not file.exists():
            raise OSError(error.errno, error.strerror, str(output)) from None
        file.write_text(text, encoding="utf-8")


def writable(output: Path | None) -> Path | None:
    """End the program if the file cannot be written, before a command does its work for nothing."""
    obstacle = None if output is None or str(output) == "-" else _obstacle(output)
    if obstacle is not None:
        print_messages([f"{output}: {os.strerror(obstacle)}"])
        raise typer.Exit(2)
    return output


def writable_or_printed(output: Path | None) -> Path | None:
    """The same; `None` for `-`, which is standard output."""
    return None if str(output) == "-" else writable(output)


def writable_file(output: Path | None) -> Path | None:
    """The same for a report beside what is printed."""
    if str(output) == "-":
        raise typer.BadParameter("found '-', expected a file: standard output has the table.")
    return writable(output)


def _obstacle(output: Path) -> int | None:
    """The error number that writing the file would give, as far as it can be foreseen."""
    folder = output.resolve().parent
    if output.is_dir():
        return errno.EISDIR
    if not folder.is_dir():
        return errno.ENOTDIR if folder.exists() else errno.ENOENT
    # A file is replaced in its folder, or written to.
    is_writable = any(os.access(one, os.W_OK) for one in (folder, output))
    return None if is_writable else errno.EACCES


def refuse_to_replace(output: Path | None, force: bool) -> None:
    """End the program if the output file exists and `force` is false."""
    if output is not None and output.exists() and not force:
        print_messages([f"{output}: found a file, expected none, or --force to replace it"])
        raise typer.Exit(2)

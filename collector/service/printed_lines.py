"""What plug-ins print becomes lines of the log: where the log is for machines, all output must be.

Only what goes through Python's `sys.stdout` and `sys.stderr` does, no writes of libraries in C.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from typing import Literal, Self, TextIO, TypeAlias, cast

import structlog

_log = structlog.get_logger(__name__)

MAX_CHARS = 1_000
"""Of a line. What is longer becomes several."""

Format: TypeAlias = Literal["console", "json"]


class PrintedLines(io.TextIOBase):
    """Stands in for a stream. Each thread has lines of its own, so that they do not mix."""

    def __init__(self, name: Literal["stdout", "stderr"], original: TextIO) -> None:
        self._name = name
        self._original = original
        self._thread = threading.local()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """For those who ask before they print."""
        return "utf-8"

    def writable(self) -> bool:
        """As a stream that can be printed to."""
        return True

    def fileno(self) -> int:
        """For those who pass the stream to another process, or to C."""
        return self._original.fileno()

    def write(self, text: str) -> int:
        """Log the lines that `text` completes."""
        *lines, rest = (getattr(self._thread, "rest", "") + text).split("\n")
        self._thread.rest = rest
        for line in lines:
            self._log_line(line)
        if len(rest) >= MAX_CHARS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Log what no line break follows yet."""
        rest, self._thread.rest = getattr(self._thread, "rest", ""), ""
        self._log_line(rest)

    def close(self) -> None:
        """Do nothing: others still print."""

    def _log_line(self, line: str) -> None:
        if getattr(self._thread, "is_logging", False):
            return  # the log itself reports here that it cannot be written
        self._thread.is_logging = True
        try:
            for start in range(0, len(line), MAX_CHARS):
                text = line[start : start + MAX_CHARS]
                _log.info("printed", stream=self._name, text=text)
        finally:
            self._thread.is_logging = False


class HeldOutput(AbstractContextManager["HeldOutput"]):
    """Keeps what is printed before the format of the log is known: the configuration that says it
    names plug-ins, which are imported when it is read. After an error, it is printed as it is.
    """

    def __init__(self) -> None:
        self._streams = ExitStack()
        self._held = io.StringIO(), io.StringIO()

    def __enter__(self) -> Self:
        for redirect, held in zip((redirect_stdout, redirect_stderr), self._held, strict=True):
            self._streams.enter_context(redirect(held))
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Print as before."""
        self._streams.close()
        if error is not None:
            self.release("console")

    def release(self, form: Format) -> None:
        """Print, or log, what is kept."""
        with printed_to(form):
            for stream, held in zip((sys.stdout, sys.stderr), self._held, strict=True):
                stream.write(held.getvalue())


@contextmanager
def printed_to(form: Format) -> Iterator[None]:
    """Log what is printed meanwhile, if the log has the format for machines."""
    if form != "json":
        yield
        return
    stdout, stderr = PrintedLines("stdout", sys.stdout), PrintedLines("stderr", sys.stderr)
    with redirect_stdout(cast(TextIO, stdout)), redirect_stderr(cast(TextIO, stderr)):
        try:
            yield
        finally:
            stdout.flush()
            stderr.flush()

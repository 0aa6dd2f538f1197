"""What plug-ins print becomes lines of the log: where the log is for machines, all output must be.

Only what goes through Python's `sys.stdout` and `sys.stderr` does, no writes of libraries in C.
"""

from __future__ import annotations

import io
import sys
import threading
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from typing import TYPE_CHECKING, Literal, Protocol, Self, TextIO, TypeAlias

import structlog

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_log = structlog.get_logger(__name__)

MAX_CHARS = 1_000
"""Of a line. What is longer becomes several."""

Format: TypeAlias = Literal["console", "json"]


class _Target(Protocol):
    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class PrintedLines:
    """Logs text. Each thread has lines of its own, so that they do not mix."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rests: dict[threading.Thread, str] = {}
        """What no line break follows yet."""
        self._thread = threading.local()

    def write(self, text: str, /) -> None:
        """Log the lines that `text` completes, and the last one of threads that have ended."""
        thread = threading.current_thread()
        *lines, rest = (self._rests.pop(thread, "") + text).split("\n")
        for line in lines:
            self._log_line(line)
        if rest:
            self._rests[thread] = rest
        if len(rest) >= MAX_CHARS:
            self.flush()
        self._log_rests([one for one in list(self._rests) if not one.is_alive()])

    def flush(self) -> None:
        """Log what no line break follows yet."""
        self._log_rests([threading.current_thread()])

    def close(self) -> None:
        """The same for all threads."""
        self._log_rests(list(self._rests))

    def _log_rests(self, threads: Iterable[threading.Thread]) -> None:
        for one in threads:
            self._log_line(self._rests.pop(one, ""))

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


class _Decoding(threading.local):
    """A thread may write a character in parts."""

    def __init__(self) -> None:
        self.decode = getincrementaldecoder("utf-8")("replace").decode


class _Bytes(io.BufferedIOBase):
    """The `buffer` of a stand-in, from which text goes on to its target."""

    def __init__(self, name: str, original: TextIO | None, target: _Target) -> None:
        self.name = f"<{name}>"
        self.target = target
        self._original = original
        self._decoding = _Decoding()

    def writable(self) -> bool:
        """As a stream that can be printed to."""
        return True

    def fileno(self) -> int:
        """For those who pass the stream to another process, or to C."""
        return super().fileno() if self._original is None else self._original.fileno()

    def write(self, data: ReadableBuffer, /) -> int:
        """Pass on what is text by now."""
        content = bytes(data)
        self.target.write(self._decoding.decode(content))
        return len(content)

    def flush(self) -> None:
        """Pass on."""
        self.target.flush()

    def close(self) -> None:
        """Do nothing: others still print."""


class _StandIn(io.TextIOWrapper):
    """Stands in for a stream, with all that plug-ins use of one. What they configure at import may
    keep it for ever.
    """

    def __init__(self, name: str, original: TextIO | None, target: _Target) -> None:
        self.bytes = _Bytes(name, original, target)
        super().__init__(self.bytes, "utf-8", "backslashreplace", "\n", write_through=True)

    def close(self) -> None:
        """Do nothing: others still print."""


class HeldOutput(AbstractContextManager["HeldOutput"]):
    """Keeps what is printed before the format of the log is known: the configuration that says it
    names plug-ins, which are imported when it is read. After an error, it is printed as it is.
    """

    def __init__(self) -> None:
        self._redirects = ExitStack()
        self._held = [_Held("stdout", sys.stdout), _Held("stderr", sys.stderr)]

    def __enter__(self) -> Self:
        stdout, stderr = (one.stand_in for one in self._held)
        self._redirects.enter_context(redirect_stdout(stdout))
        self._redirects.enter_context(redirect_stderr(stderr))
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Print as before."""
        self._redirects.close()
        if error is not None:
            self.release("console")

    def release(self, form: Format) -> None:
        """Print, or log, what is kept, and what whoever kept a stream prints later."""
        for one in self._held:
            one.release(form)


class _Held:
    """One of the streams."""

    def __init__(self, name: str, original: TextIO | None) -> None:
        self._name, self._original = name, original
        self._text = io.StringIO()
        self.stand_in = _StandIn(name, original, self._text)

    def release(self, form: Format) -> None:
        target: _Target = PrintedLines(self._name)
        if form == "console":
            target = self._original or _Nowhere()
        self.stand_in.bytes.target = target
        if text := self._text.getvalue():
            target.write(text)
            target.flush()


class _Nowhere:
    """Instead of a stream that was closed before the process began."""

    def write(self, text: str, /) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""


@contextmanager
def printed_to(form: Format) -> Iterator[None]:
    """Log what is printed meanwhile, if the log has the format for machines."""
    if form != "json":
        yield
        return
    targets = PrintedLines("stdout"), PrintedLines("stderr")
    stdout = _StandIn("stdout", sys.stdout, targets[0])
    stderr = _StandIn("stderr", sys.stderr, targets[1])
    with redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            yield
        finally:
            for target in targets:
                target.close()

"""Sets up the log: all lines of pathgauge and of its libraries go to standard error in one format.

Content of telemetry must not get into the log, and the text of an exception may quote it. So the
log has the type and the stack of an exception, but not its text. Errors of the operating system, of
the database and of imports are logged with their text.

The loggers of pathgauge are not among those of the process: a plug-in that imports a library which
sets up or disables logging changes no line of them.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
import traceback
from asyncio import AbstractEventLoop
from typing import Any, Literal

import structlog

_MAX_CAUSES = 10
_OWN = logging.Manager(logging.RootLogger(logging.WARNING))


def configure(
    level: str = "info", form: Literal["console", "json"] = "console", **known: int
) -> None:
    """`level` is debug, info, warning or error; `json` writes one object per line. Every line has
    what is `known` of this process.
    """

    def add_known(
        _: object, __: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        return {**known, **event}

    shared: list[structlog.typing.Processor] = [
        add_known,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(_format),
    ]
    rendering: list[structlog.typing.Processor] = [structlog.processors.JSONRenderer()]
    if form == "console":
        console = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        rendering = [_visible, console]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=_own_logger,
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # its errors quote what senders wrote
    for root in (logging.getLogger(), _OWN.root):
        root.handlers = [handler]
        root.setLevel(level.upper())


def _own_logger(name: str = "pathgauge") -> logging.Logger:
    return _OWN.getLogger(name)


def log_unhandled(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no task caught. By default asyncio would log its text."""
    _own_logger("asyncio").error(
        "unhandled: %s", context["message"], exc_info=context.get("exception")
    )


def log_unhandled_in_thread(unhandled: threading.ExceptHookArgs) -> None:
    """Log an exception that ended a thread. By default Python would print its text."""
    name = unhandled.thread.name if unhandled.thread is not None else None
    exc_info = (
        unhandled.exc_type,
        unhandled.exc_value or unhandled.exc_type(),
        unhandled.exc_traceback,
    )
    _own_logger("threading").error("unhandled in thread %s", name, exc_info=exc_info)


def _visible(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """The values without control characters: a terminal would obey those in names of senders."""
    return {
        key: value.encode("unicode_escape").decode() if _is_invisible(key, value) else value
        for key, value in event.items()
    }


def _is_invisible(key: str, value: object) -> bool:
    # A stack has several lines, and nothing of senders.
    return isinstance(value, str) and key != "exception" and not value.isprintable()


def _format(exc_info: structlog.typing.ExcInfo) -> str:
    """The exception and its causes, the first cause first, without their texts."""
    error: BaseException | None = exc_info[1]
    parts: list[str] = []
    while error is not None and len(parts) < _MAX_CAUSES:
        frames = "".join(traceback.format_tb(error.__traceback__))
        parts.append(f"{frames}{type(error).__qualname__}{_text(error)}")
        error = _cause(error)
    return "\nwhich led to\n".join(reversed(parts))


def _cause(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f": {os.strerror(error.errno)}"
    if isinstance(error, sqlite3.Error | ImportError):
        return f": {error}"
    return ""

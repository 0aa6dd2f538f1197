"""Sets up the log: every line of pathgauge and of its libraries goes to standard error, in one
form.

What agents said is not for the log, and the text of an exception may quote it. So of an exception
the log has its type and where in the code it came from; its text only of those that the system, the
database or the import of a module raise.
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

# gRPC writes lines of its own form, some of them whenever a sender likes. It reads this when it is
# imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def configure(level: str = "info", form: Literal["console", "json"] = "console") -> None:
    """`level` is debug, info, warning or error; `json` writes one object a line, for machines."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(_shown),
    ]
    if form == "json":
        renderer: structlog.typing.Processor = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # it quotes what senders wrote, as errors
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def log_unhandled(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody caught in a task; asyncio itself would quote the exception."""
    logging.getLogger("asyncio").error(
        "unhandled: %s", context["message"], exc_info=context.get("exception")
    )


def log_unhandled_in_thread(unhandled: threading.ExceptHookArgs) -> None:
    """What ended a thread; Python itself would print the exception with its text."""
    name = unhandled.thread.name if unhandled.thread is not None else None
    exc_info = (
        unhandled.exc_type,
        unhandled.exc_value or unhandled.exc_type(),
        unhandled.exc_traceback,
    )
    logging.getLogger("threading").error("unhandled in thread %s", name, exc_info=exc_info)


def _shown(exc_info: structlog.typing.ExcInfo) -> str:
    """The exception and those that caused it, the first cause first, without their texts."""
    error: BaseException | None = exc_info[1]
    parts: list[str] = []
    while error is not None and len(parts) < _MAX_CAUSES:
        frames = "".join(traceback.format_tb(error.__traceback__))
        parts.append(f"{frames}{type(error).__qualname__}{_text(error)}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nwhich led to\n".join(reversed(parts))


def _text(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f": {os.strerror(error.errno)}" if error.errno is not None else ""
    return f": {error}" if isinstance(error, sqlite3.Error | ImportError) else ""

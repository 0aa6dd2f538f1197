"""Exceptions as failures, for instrumentations that record them and leave the status of the span
unset. Elsewhere a recorded exception may have been handled.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span


def recorded_exception(span: Span) -> str | None:
    """The message of the first recorded exception, otherwise its type."""
    for event in span.events:
        if event.name == "exception":
            message = as_id(event.attributes.get("exception.message"))
            return message or as_id(event.attributes.get("exception.type")) or "error"
    return None

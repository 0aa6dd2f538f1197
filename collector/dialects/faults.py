"""Tells whether the thing that some spans describe failed, and how: spans come in, an error message or type goes out."""

from __future__ import annotations

from collections.abc import Sequence

from collector.dialects.registry import FIELDS, first
from collector.dialects.values import as_id
from collector.spans import STATUS_ERROR, STATUS_UNSET, Span


def error_of(spans: Sequence[Span]) -> str | None:
    """The message of a failure, else its type; `None` when nothing failed. A recorded exception alone is no failure.

    `spans` describe one thing, the outer one first. What that says counts; where it says nothing, the last inner one does, as the
    others were attempts.
    """
    deciding = spans[0] if len(spans) == 1 or spans[0].status != STATUS_UNSET else spans[-1]
    if deciding.status == STATUS_ERROR:
        return _exception(deciding, "exception.message") or deciding.status_message or error_type((deciding,)) or "error"
    return error_type((deciding,))


def error_type(spans: Sequence[Span]) -> str | None:
    """The class of a failure."""
    named = as_id(first(spans, FIELDS.error_type))
    if named is not None:
        return named
    for span in spans:
        if span.status == STATUS_ERROR and (kind := _exception(span, "exception.type")):
            return kind
    return None


def _exception(span: Span, key: str) -> str | None:
    return next(
        (value for event in reversed(span.events) if event.name == "exception" and (value := as_id(event.attributes.get(key)))), None
    )

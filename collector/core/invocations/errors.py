"""Tells whether the thing that some spans describe failed, and how: spans come in, an error message
or type goes out.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import STATUS_ERROR, STATUS_UNSET, Span

_CONTROL_FLOW = frozenset(
    {
        "ParentCommand",
        "GraphInterrupt",
        "NodeInterrupt",
        "GraphBubbleUp",
        "CallDeferred",
        "ApprovalRequired",
    }
)
"""Exceptions by which frameworks pass control on: a span that such a one ended did what it was
meant to do.
"""

_TRACEBACK = "Traceback (most recent call last):"


def error_of(node: Node) -> str | None:
    """The message of a failure, else its type; `None` when nothing failed. A recorded exception
    alone is no failure.

    What the outer one of a node's spans says counts; where it says nothing, the last inner one
    does, as the others were attempts.
    """
    spans = node.spans
    return _error(
        node, spans[0] if len(spans) == 1 or spans[0].status != STATUS_UNSET else spans[-1]
    )


def error_of_any(node: Node) -> str | None:
    """The first failure among a node's spans, of which none is a mere attempt."""
    return next((error for span in node.spans if (error := _error(node, span)) is not None), None)


def error_type(node: Node) -> str | None:
    """The class of a failure."""
    return _type(node, node.spans)


def _error(node: Node, span: Span) -> str | None:
    named = _type(node, (span,))
    if span.status == STATUS_ERROR or named is not None:
        return None if _passes_control(span) else _message(span) or named or "error"
    for dialect in node.dialects:
        failure = dialect.failure(span) if dialect.failure is not None else None
        if failure and not _passes_control(span):
            return _bare(failure)
    return None


def _message(span: Span) -> str | None:
    """What is told of a failure; the SDK writes "Type: message" into the status even where there is
    no message.
    """
    if span.status != STATUS_ERROR:
        return None
    return _bare(_exception(span, "exception.message")) or span.status_message.removesuffix(": ")


def _type(node: Node, spans: Sequence[Span]) -> str | None:
    named = as_id(first(spans, node.fields.error_type))
    if named is not None:
        return named
    failed = (span for span in spans if span.status == STATUS_ERROR)
    return next((kind for span in failed if (kind := _exception(span, "exception.type"))), None)


def _passes_control(span: Span) -> bool:
    return (_exception(span, "exception.type") or "").rpartition(".")[2] in _CONTROL_FLOW


def _bare(message: str | None) -> str | None:
    """A message without the traceback that LangSmith appends."""
    return (message or "").partition(_TRACEBACK)[0].strip() or message


def _exception(span: Span, key: str) -> str | None:
    return next(
        (
            value
            for event in reversed(span.events)
            if event.name == "exception" and (value := as_id(event.attributes.get(key)))
        ),
        None,
    )

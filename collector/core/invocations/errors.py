"""Whether the operation that some spans describe failed: the error message, or the error type."""

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
        "ToolInterruptError",
    }
)
"""Exceptions that frameworks use for control flow. A span that ends with one did not fail."""

_TRACEBACK = "Traceback (most recent call last):"


def error_of(node: Node) -> str | None:
    """The message of a failure, otherwise its type; `None` if nothing failed. A recorded exception
    alone is not a failure.

    The outermost span of a node decides. If its status is unset, the last inner span does: the
    spans before it were earlier attempts.
    """
    spans = node.spans
    is_open = spans[0].status == STATUS_UNSET or _is_copied(node, spans[0])
    return _error(node, spans[-1] if is_open else spans[0])


def error_of_any(node: Node) -> str | None:
    """The first failure of any span of a node, for nodes without repeated attempts."""
    for span in node.spans:
        error = _error(node, span)
        if error is not None:
            return error
    return None


def error_type(node: Node) -> str | None:
    """The class of a failure."""
    return _type(node, node.spans)


def _error(node: Node, span: Span) -> str | None:
    stated = _type(node, (span,))
    if _has_failed(node, span) or stated is not None:
        if _passes_control(span):
            return None
        return _message(node, span) or stated or "error"
    for dialect in node.dialects:
        failure = dialect.failure(span) if dialect.failure is not None else None
        if failure and not _passes_control(span):
            return _without_traceback(failure)
    return None


def _has_failed(node: Node, span: Span) -> bool:
    return span.status == STATUS_ERROR and not _is_copied(node, span)


def _is_copied(node: Node, span: Span) -> bool:
    """Whether the error status of a span is that of another span."""
    if span.status != STATUS_ERROR:
        return False
    return any(one.copied_error is not None and one.copied_error(span) for one in node.dialects)


def _message(node: Node, span: Span) -> str | None:
    """The message of a span that failed. The SDK writes "Type: message" into the status even if the
    message is empty.
    """
    if _is_copied(node, span):
        return None
    message = _without_traceback(_exception(span, "exception.message"))
    return message or span.status_message.removesuffix(": ")


def _type(node: Node, spans: Sequence[Span]) -> str | None:
    stated = as_id(first(spans, node.fields.error_type))
    if stated is not None:
        return stated
    for span in spans:
        if _has_failed(node, span):
            kind = _exception(span, "exception.type")
            if kind:
                return kind
    return None


def _passes_control(span: Span) -> bool:
    return (_exception(span, "exception.type") or "").rpartition(".")[2] in _CONTROL_FLOW


def _without_traceback(message: str | None) -> str | None:
    """A message without the traceback that LangSmith appends."""
    return (message or "").partition(_TRACEBACK)[0].strip() or message


def _exception(span: Span, key: str) -> str | None:
    """An attribute of the last exception event that has it."""
    for event in reversed(span.events):
        if event.name == "exception":
            value = as_id(event.attributes.get(key))
            if value:
                return value
    return None

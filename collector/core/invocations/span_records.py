"""The spans of an invocation as values, for scorers that query spans.

Only the attributes that a scorer reads are kept. A long value could equal no value in a
configuration, so only its key is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.scorers.authoring.extras import SpanRecord, SpanStatus

MAX_VALUE = 2_000
"""Characters of an attribute value; lists and objects as JSON."""
_MAX_NAME = 1_000
_MAX_CONTAINERS = 200
"""Lists and objects in a value, so that code that walks it can recurse."""

_STATUS: Sequence[SpanStatus] = ("unset", "ok", "error")


def span_records(nodes: Iterable[Node], keys: frozenset[str]) -> tuple[SpanRecord, ...]:
    """The spans of the nodes in their order, with the attributes of these keys.

    The parent is the one that the reader found, which may differ from the one in the telemetry.
    """
    nodes = tuple(nodes)
    ids = {node.span.span_id for node in nodes}
    return tuple(_record(node, ids, keys) for node in nodes)


def _record(node: Node, ids: set[str], keys: frozenset[str]) -> SpanRecord:
    span, parent = node.span, node.parent
    parent_id = parent.span.span_id if parent is not None else None
    values = _values(span, keys)
    return SpanRecord(
        span_id=span.span_id,
        parent_id=parent_id if parent_id in ids else None,
        name=span.name[:_MAX_NAME],
        status=_STATUS[span.status] if 0 <= span.status < len(_STATUS) else "unset",
        start_ns=span.start_ns or None,
        end_ns=span.end_ns or None,
        attributes={key: value for key, value in values.items() if value is not _TOO_LONG},
        too_long=tuple(key for key, value in values.items() if value is _TOO_LONG),
    )


def _values(span: Span, keys: frozenset[str]) -> dict[str, Any]:
    if not keys:
        return {}
    attributes = span.attributes
    return {key: _plain(attributes[key]) for key in sorted(keys & attributes.keys())}


_TOO_LONG = object()


def _plain(value: Any) -> Any:
    """The value as JSON, or `_TOO_LONG`."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE else _TOO_LONG
    try:
        text = json.dumps(value, default=repr)
    except (ValueError, RecursionError):
        return _TOO_LONG
    if len(text) > MAX_VALUE or text.count("[") + text.count("{") > _MAX_CONTAINERS:
        return _TOO_LONG
    return json.loads(text)

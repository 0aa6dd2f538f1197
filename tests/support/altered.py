"""Captures as they would be if the agent had answered nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from pathgauge.collector.core.otlp.spans import LogRecord, Span

RecordT = TypeVar("RecordT", Span, LogRecord)


def without_text(records: Iterable[RecordT], text: str) -> list[RecordT]:
    """The records with an empty text wherever they have this one: in plain values, in JSON of any
    depth, and inside of other texts.
    """
    return [_without(record, text) for record in records]


def _without(record: RecordT, text: str) -> RecordT:
    proto = type(record.proto).FromString(record.raw)
    for pair in proto.attributes:
        _empty(pair.value, text)
    for event in getattr(proto, "events", ()):
        for pair in event.attributes:
            _empty(pair.value, text)
    if isinstance(record, LogRecord):
        _empty(proto.body, text)
    changed: Callable[..., RecordT] = type(record)
    return changed(proto.SerializeToString(), record.resource, record.scope, record.tenant)


def _empty(value: AnyValue, text: str) -> None:
    for below in value.array_value.values:
        _empty(below, text)
    for pair in value.kvlist_value.values:
        _empty(pair.value, text)
    if value.WhichOneof("value") == "string_value":
        value.string_value = _emptied(value.string_value, text)


def _emptied(written: str, text: str) -> str:
    if written.strip() == text.strip():
        return ""
    try:
        decoded = json.loads(written)
    except ValueError:
        return written.replace(text, "")
    if isinstance(decoded, dict | list | str):
        return json.dumps(_emptied_json(decoded, text))
    return written


def _emptied_json(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _emptied_json(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_emptied_json(item, text) for item in value]
    return _emptied(value, text) if isinstance(value, str) else value

"""What a span keeps of its decoded content."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.otlp.spans import Resource, Scope, Span
from support import wire


def test_an_attribute_is_parsed_once_until_the_content_is_released() -> None:
    parsed: list[Any] = []
    more = wire.attribute(wire.field(1, b"1"), b"one") + wire.attribute(wire.field(1, b"2"), b"two")
    span = Span(wire.span(more=more), Resource(), Scope())

    def parse(raw: Any) -> int:
        parsed.append(raw)
        return int(raw)

    assert [span.parsed(key, parse) for key in ("one", "one", "two", "none")] == [1, 1, 2, None]
    span.release()
    assert span.parsed("one", parse) == 1
    assert parsed == ["1", "2", "1"]


def test_waiting_spans_of_the_same_name_share_the_text() -> None:
    raw = SpanProto(name="execute_tool find_order").SerializeToString()
    first, second = (Span(raw, Resource(), Scope()) for _ in range(2))
    assert first.name == "execute_tool find_order"
    assert first.name is second.name

"""Damages captures of real agents in one place at a time: spans come in, and the same spans with
one of them changed go out.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.otlp.spans import Span

OTHER_TYPES = (
    AnyValue(),
    AnyValue(bool_value=True),
    AnyValue(int_value=-1),
    AnyValue(double_value=float("nan")),
    AnyValue(bytes_value=b"\xff"),
    AnyValue(string_value=""),
    AnyValue(string_value="[" * 5000),
    AnyValue(
        string_value=(
            '{"messages": [[null, 1, {"role": {}, "parts": 3, "content": [{"type": []}]}]]}'
        )
    ),
    AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue()])),
    AnyValue(
        kvlist_value=KeyValueList(
            values=[KeyValue(key="role", value=AnyValue(int_value=1)), KeyValue(key="content")]
        )
    ),
)


def mutated(spans: list[Span], random: Random) -> list[Span]:
    """The same spans, but for one that is gone, or damaged in one or two ways."""
    spans = list(spans)
    at = random.randrange(len(spans))
    if random.random() < 0.1:
        del spans[at]
        return spans
    span = SpanProto()
    span.CopyFrom(spans[at].proto)
    for _ in range(random.choice((1, 1, 2))):
        random.choice(DAMAGES)(span, random)
    spans[at] = Span(span.SerializeToString(), spans[at].resource, spans[at].scope)
    held = {one.span_id: one for one in spans}
    return list(held.values())


def change_type(span: SpanProto, random: Random) -> None:
    if span.attributes:
        random.choice(span.attributes).value.CopyFrom(random.choice(OTHER_TYPES))


def drop_attributes(span: SpanProto, random: Random) -> None:
    for _ in range(min(len(span.attributes), random.choice((1, 1, 5, 100)))):
        del span.attributes[random.randrange(len(span.attributes))]
    span.dropped_attributes_count += 1


def cut_text(span: SpanProto, random: Random) -> None:
    """What an attribute length limit does."""
    texts = [pair.value for pair in span.attributes if len(pair.value.string_value) > 1]
    if texts:
        value = random.choice(texts)
        value.string_value = value.string_value[: random.randrange(len(value.string_value))]


def break_text(span: SpanProto, random: Random) -> None:
    """A piece of one text takes the place of a piece of it or of another."""
    texts = [pair.value for pair in span.attributes if len(pair.value.string_value) > 1]
    if texts:
        value, piece = random.choice(texts), random.choice(texts).string_value
        start, end = sorted(random.randrange(len(value.string_value)) for _ in range(2))
        piece = piece[: random.randrange(len(piece))][-40:]
        value.string_value = value.string_value[:start] + piece + value.string_value[end:]


def swap_values(span: SpanProto, random: Random) -> None:
    if len(span.attributes) > 1:
        one, other = random.sample(list(span.attributes), 2)
        one.key, other.key = other.key, one.key


def damage_events(span: SpanProto, random: Random) -> None:
    for event in span.events:
        for pair in event.attributes:
            if random.random() < 0.5:
                pair.value.CopyFrom(random.choice(OTHER_TYPES))


def change_ids(span: SpanProto, random: Random) -> None:
    span.parent_span_id = random.choice((b"", span.span_id, random.randbytes(8)))


def change_times(span: SpanProto, random: Random) -> None:
    span.start_time_unix_nano, span.end_time_unix_nano = random.choice(
        (
            (0, 0),
            (span.end_time_unix_nano, span.start_time_unix_nano),
            (2**64 - 1, 1),
            (span.start_time_unix_nano,) * 2,
        )
    )


def rename(span: SpanProto, random: Random) -> None:
    span.name = random.choice(
        ("", "invoke_agent ", "execute_tool", "call_llm", "tools", span.name[:-1], span.name * 2)
    )


def change_status(span: SpanProto, random: Random) -> None:
    # what senders of another version may send
    span.status.code = random.choice((0, 1, 2, 7))  # type: ignore[assignment]


DAMAGES: tuple[Callable[[SpanProto, Random], None], ...] = (
    change_type,
    change_type,
    drop_attributes,
    cut_text,
    break_text,
    swap_values,
    damage_events,
    change_ids,
    change_times,
    rename,
    change_status,
)

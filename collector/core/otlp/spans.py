"""Spans and log records as the core sees them: identity at once, content on demand.

Each holds the protobuf bytes of its own OTLP message (`opentelemetry.proto.trace.v1.Span`,
`…logs.v1.LogRecord`), whatever the encoding it arrived in. Names, ids and times are read on
arrival; attributes and events are decoded once, when the trace is read. Ids are lower-case hex,
times Unix nanoseconds (0 where the sender gave none).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

Attributes = Mapping[str, Any]
"""Attribute values as Python ones: str, bool, int, float, bytes, list, dict or None."""

STATUS_UNSET, STATUS_ERROR = 0, 2

_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200
_NO_SPAN_ID = bytes(8)


@dataclass(frozen=True, slots=True)
class Resource:
    """The process that sent a span; one object is shared by all spans of an export request."""

    attributes: Attributes = field(default_factory=dict)
    size: int = field(default=0, compare=False)
    """Bytes of its OTLP message, where it came in one."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The instrumentation library that made a span."""

    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A span event."""

    name: str
    time_ns: int
    attributes: Attributes


ProtoT = TypeVar("ProtoT", SpanProto, LogRecordProto)


class _Encoded(Generic[ProtoT]):
    """What spans and log records share: their bytes, where they came from, and attributes on
    demand.
    """

    __slots__ = ("_attributes", "_proto", "raw", "resource", "scope", "tenant", "trace_id")

    _kind: ClassVar[Any]

    def __init__(
        self, raw: bytes, resource: Resource, scope: Scope, tenant: str, proto: ProtoT
    ) -> None:
        self.raw = raw
        self.resource = resource
        self.scope = scope
        self.tenant = tenant
        self.trace_id = proto.trace_id.hex()
        self._proto: ProtoT | None = None
        self._attributes: Attributes | None = None

    @property
    def proto(self) -> ProtoT:
        """The whole OTLP message."""
        if self._proto is None:
            self._proto = self._kind.FromString(self.raw)
        return self._proto

    @property
    def attributes(self) -> Attributes:
        """The attributes; of a repeated key the last one wins."""
        if self._attributes is None:
            self._attributes = decode_attributes(self.proto.attributes)
        return self._attributes

    def release(self) -> None:
        """Give back what was decoded; it is decoded again when asked for."""
        self._proto = self._attributes = None


class Span(_Encoded[SpanProto]):
    """One finished span. Two spans are equal when tenant, ids and bytes are."""

    __slots__ = (
        "_events",
        "end_ns",
        "name",
        "parent_id",
        "remote_parent",
        "span_id",
        "start_ns",
        "status",
        "status_message",
    )

    _kind = SpanProto

    def __init__(
        self,
        raw: bytes,
        resource: Resource,
        scope: Scope,
        tenant: str = "",
        proto: SpanProto | None = None,
    ) -> None:
        """Read the head of `raw`; `proto` spares parsing it again. Raises
        `google.protobuf.message.DecodeError`.
        """
        proto = proto or SpanProto.FromString(raw)
        super().__init__(raw, resource, scope, tenant, proto)
        self.span_id = proto.span_id.hex()
        self.parent_id = (
            None if (parent := proto.parent_span_id) == _NO_SPAN_ID else parent.hex() or None
        )
        self.remote_parent = (
            proto.flags & (_HAS_IS_REMOTE | _IS_REMOTE) == _HAS_IS_REMOTE | _IS_REMOTE
        )
        self.name = proto.name
        self.start_ns = proto.start_time_unix_nano
        self.end_ns = proto.end_time_unix_nano
        self.status, self.status_message = (
            (proto.status.code, proto.status.message) if proto.HasField("status") else (0, "")
        )
        self._events: tuple[Event, ...] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Span):
            return NotImplemented
        return (self.tenant, self.raw) == (other.tenant, other.raw)

    def __hash__(self) -> int:
        return hash((self.tenant, self.raw))

    def __repr__(self) -> str:
        return f"Span({self.name!r}, {self.trace_id}/{self.span_id}, parent={self.parent_id})"

    @property
    def events(self) -> tuple[Event, ...]:
        """The events in the order of their times."""
        if self._events is None:
            events = (
                Event(e.name, e.time_unix_nano, decode_attributes(e.attributes))
                for e in self.proto.events
            )
            self._events = tuple(sorted(events, key=lambda e: e.time_ns))
        return self._events

    @property
    def dropped_attributes(self) -> int:
        """How many attributes and events the sender's SDK threw away."""
        return self.proto.dropped_attributes_count + self.proto.dropped_events_count

    @property
    def trace_state(self) -> str:
        """The W3C `tracestate`, as sent."""
        return self.proto.trace_state

    def release(self) -> None:
        """Give back what was decoded; it is decoded again when asked for."""
        super().release()
        self._events = None


def start_order(span: Span) -> tuple[int, int, str]:
    """Sorts spans by start, an enclosing one before the one it encloses; the id settles what the
    clock cannot.
    """
    return span.start_ns, -span.end_ns, span.span_id


class LogRecord(_Encoded[LogRecordProto]):
    """One log record that names a trace; it belongs to the span `span_id`, or to the whole trace
    when that is `None`.
    """

    __slots__ = ("_body", "span_id", "time_ns")

    _kind = LogRecordProto

    def __init__(
        self,
        raw: bytes,
        resource: Resource,
        scope: Scope,
        tenant: str = "",
        proto: LogRecordProto | None = None,
    ) -> None:
        """Read the head of `raw`; `proto` spares parsing it again. Raises
        `google.protobuf.message.DecodeError`.
        """
        proto = proto or LogRecordProto.FromString(raw)
        super().__init__(raw, resource, scope, tenant, proto)
        self.span_id = (
            span_id.hex()
            if len(span_id := proto.span_id) == len(_NO_SPAN_ID) and span_id != _NO_SPAN_ID
            else None
        )
        self.time_ns = proto.time_unix_nano or proto.observed_time_unix_nano
        self._body: Any = None

    @property
    def event_name(self) -> str:
        """The event name; older SDKs carry it in the attribute `event.name`."""
        return self.proto.event_name or str(self.attributes.get("event.name") or "")

    @property
    def body(self) -> Any:
        """The body as a Python value."""
        if self._body is None and self.proto.HasField("body"):
            self._body = decode_value(self.proto.body)
        return self._body

    def release(self) -> None:
        """Give back what was decoded; it is decoded again when asked for."""
        super().release()
        self._body = None


def decode_attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """OTLP key-values as a dict."""
    # Most values are non-empty strings, and asking for one outright spares the look-up of the kind.
    return {pair.key: (value := pair.value).string_value or decode_value(value) for pair in pairs}


def decode_value(value: AnyValue) -> Any:
    """An OTLP value as the Python value it stands for; an empty one is `None`."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [decode_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return decode_attributes(value.kvlist_value.values)
    return getattr(value, kind)


def encode_attributes(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """A dict as OTLP key-values: `decode_attributes` turned round."""
    return [KeyValue(key=key, value=encode_value(value)) for key, value in attributes.items()]


def encode_value(value: Any) -> AnyValue:
    """A Python value as an OTLP one."""
    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case Mapping():
            return AnyValue(kvlist_value=KeyValueList(values=encode_attributes(value)))
        case _:
            return AnyValue(array_value=ArrayValue(values=[encode_value(item) for item in value]))


ClosedBy = Literal["root_ended", "idle", "too_old", "too_big", "shutdown"]
"""What made a trace readable; a closed set, so that it can label a counter."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans and log records of one trace, or of those invocations of it that are complete, in a
    stable order.
    """

    tenant: str
    trace_id: str
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...] = ()
    closed_by: ClosedBy = "root_ended"
    truncated: bool = False
    """Whether spans of this trace were dropped because it was too big."""

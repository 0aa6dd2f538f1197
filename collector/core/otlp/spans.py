"""Spans and log records. Ids, names and times are decoded on arrival, the content on demand.

Each object keeps the protobuf bytes of its OTLP message (`opentelemetry.proto.trace.v1.Span`,
`…logs.v1.LogRecord`), whatever encoding the sender used. Attributes and events are decoded once,
when the trace is read. Ids are lower-case hexadecimal; times are Unix nanoseconds, 0 if unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any, ClassVar, Generic, Literal, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

Attributes = Mapping[str, Any]
"""Attribute values as Python values: str, bool, int, float, bytes, list, dict or None."""

STATUS_UNSET, STATUS_ERROR = 0, 2

_REMOTE = 0x100 | 0x200
"""The flags of a span that say that its parent's location is known, and remote."""
_SERVED = (SpanProto.SPAN_KIND_SERVER, SpanProto.SPAN_KIND_CONSUMER)
_NO_SPAN_ID = bytes(8)


@dataclass(frozen=True, slots=True)
class Resource:
    """The process that sent a span. All spans of a resource group share one object."""

    attributes: Attributes = field(default_factory=dict)
    size: int = field(default=0, compare=False)
    """Size of its OTLP message in bytes; 0 if it was not decoded from one."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The instrumentation library that created a span."""

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
    """A record with its encoded bytes, and attributes that are decoded on demand."""

    __slots__ = (
        "_attributes",
        "_parsed",
        "_proto",
        "raw",
        "resource",
        "scope",
        "tenant",
        "trace_id",
    )

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
        self._parsed: dict[str, Any] | None = None

    @property
    def proto(self) -> ProtoT:
        """The whole OTLP message."""
        if self._proto is None:
            self._proto = self._kind.FromString(self.raw)
        return self._proto

    @property
    def attributes(self) -> Attributes:
        """The attributes. For a repeated key, the last value wins."""
        if self._attributes is None:
            self._attributes = decode_attributes(self.proto.attributes)
        return self._attributes

    def parsed(self, key: str, parse: Callable[[Any], Any]) -> Any:
        """What `parse` makes of an attribute, or `None` without it. It is parsed once, by the
        first who asks: several fields may be members of one attribute.
        """
        if self._parsed is None:
            self._parsed = {}
        if key not in self._parsed:
            raw = self.attributes.get(key)
            self._parsed[key] = None if raw is None else parse(raw)
        return self._parsed[key]

    def release(self) -> None:
        """Drop the decoded content; it is decoded again on the next access."""
        self._proto = self._attributes = self._parsed = None


class Span(_Encoded[SpanProto]):
    """One finished span. Spans are equal if their tenant and bytes are equal."""

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
        """Decode ids, names and times. `proto` is the parsed form of `raw`, if there is one. Raises
        `google.protobuf.message.DecodeError`.
        """
        if proto is None:
            proto = SpanProto.FromString(raw)
        super().__init__(raw, resource, scope, tenant, proto)
        self.span_id = proto.span_id.hex()
        self.parent_id = _parent_id(proto.parent_span_id)
        self.remote_parent = proto.flags & _REMOTE == _REMOTE
        self.name = intern(proto.name)  # one text for the many spans of a name that wait
        self.start_ns = proto.start_time_unix_nano
        self.end_ns = proto.end_time_unix_nano
        self.status, self.status_message = STATUS_UNSET, ""
        if proto.HasField("status"):
            self.status, self.status_message = proto.status.code, proto.status.message
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
        """The events, ordered by time."""
        if self._events is None:
            events = (
                Event(e.name, e.time_unix_nano, decode_attributes(e.attributes))
                for e in self.proto.events
            )
            self._events = tuple(sorted(events, key=lambda e: e.time_ns))
        return self._events

    @property
    def dropped_attributes(self) -> int:
        """Number of attributes and events that the sender's SDK dropped."""
        return self.proto.dropped_attributes_count + self.proto.dropped_events_count

    @property
    def serves_request(self) -> bool:
        """Whether it serves a request of another process, so that its parent is there."""
        return self.proto.kind in _SERVED

    def is_orphan(self, known: Container[str]) -> bool:
        """Whether its parent is of the same process, and not among these span ids."""
        if self.parent_id is None or self.parent_id in known:
            return False
        return not self.remote_parent and not self.serves_request

    @property
    def trace_state(self) -> str:
        """The W3C `tracestate`, as sent."""
        return self.proto.trace_state

    def release(self) -> None:
        """Drop the decoded content; it is decoded again on the next access."""
        super().release()
        self._events = None


def start_order(span: Span) -> tuple[int, int, str]:
    """Sort key: by start time, enclosing spans before enclosed ones, then by id."""
    return span.start_ns, -span.end_ns, span.span_id


class LogRecord(_Encoded[LogRecordProto]):
    """One log record with a trace id. It belongs to the span `span_id`, or to the whole trace if
    that is `None`.
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
        """Decode ids, names and times. `proto` is the parsed form of `raw`, if there is one. Raises
        `google.protobuf.message.DecodeError`.
        """
        proto = proto or LogRecordProto.FromString(raw)
        super().__init__(raw, resource, scope, tenant, proto)
        self.span_id = _span_id(proto.span_id)
        self.time_ns = proto.time_unix_nano or proto.observed_time_unix_nano
        self._body: Any = None

    @property
    def event_name(self) -> str:
        """The event name. Older SDKs put it into the attribute `event.name`."""
        return self.proto.event_name or str(self.attributes.get("event.name") or "")

    @property
    def body(self) -> Any:
        """The body as a Python value."""
        if self._body is None and self.proto.HasField("body"):
            self._body = decode_value(self.proto.body)
        return self._body

    def release(self) -> None:
        """Drop the decoded content; it is decoded again on the next access."""
        super().release()
        self._body = None


def _parent_id(raw: bytes) -> str | None:
    return None if raw == _NO_SPAN_ID else raw.hex() or None


def _span_id(raw: bytes) -> str | None:
    if len(raw) != len(_NO_SPAN_ID) or raw == _NO_SPAN_ID:
        return None
    return raw.hex()


def decode_attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """OTLP key-values as a dict."""
    # Most values are non-empty strings; trying `string_value` first avoids looking up the kind.
    return {pair.key: (value := pair.value).string_value or decode_value(value) for pair in pairs}


def decode_value(value: AnyValue) -> Any:
    """An OTLP value as a Python value; an empty one is `None`."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [decode_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return decode_attributes(value.kvlist_value.values)
    return getattr(value, kind)


def encode_attributes(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """A dict as OTLP key-values: the inverse of `decode_attributes`."""
    return [KeyValue(key=key, value=encode_value(value)) for key, value in attributes.items()]


def encode_value(value: Any) -> AnyValue:
    """A Python value as an OTLP value."""
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


ClosedBy = Literal["root_ended", "idle", "too_old", "too_big", "too_slow", "purged", "shutdown"]
"""Why no more records of a trace are waited for. A closed set, because it is a metric label."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans and log records of one trace, or of single complete invocations in it, in a stable
    order.
    """

    tenant: str
    trace_id: str
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...] = ()
    closed_by: ClosedBy = "root_ended"
    truncated: bool = False
    """Whether spans of the trace may be missing, because it was too big or journal rows were lost.
    """
    is_first: bool = False
    """Whether the whole trace is read for the first time."""
    is_part: bool = False
    """Whether it has only some of the spans that have arrived."""

"""Redacts whole records: spans, log records and resources.

No record makes it raise. A span or log record that was changed gets the attribute
`pathgauge.redacted`.
"""

from __future__ import annotations

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as Repeated
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto, Status

from pathgauge.collector.core.invocations.messages.values import REDACTED_KEY
from pathgauge.collector.core.otlp.spans import (
    LogRecord,
    Resource,
    Scope,
    Span,
    decode_attributes,
    encode_attributes,
)
from pathgauge.collector.core.redaction.content import ContentFilter
from pathgauge.collector.core.redaction.plain_text import DroppedError
from pathgauge.collector.core.redaction.replace import MASKED
from pathgauge.collector.core.redaction.values import Values

_TRACESTATE_MEMBER = "pathgauge="
"""This `tracestate` member has the scenario id. It is not content."""


class Records:
    """Redacts the records of one export request."""

    def __init__(self, values: Values, without_content: ContentFilter | None) -> None:
        """`without_content`: the filter to apply if content must not be kept."""
        self._values = values
        self._without_content = without_content

    def resource(self, resource: Resource) -> Resource:
        """Redact a resource. This does not mark its records as redacted."""
        try:
            pairs = KeyValueList(values=encode_attributes(resource.attributes)).values
            if self._without_content is not None:
                self._without_content.attributes(pairs, self._values.counts)
            self._values.pairs(pairs)
            return Resource(decode_attributes(pairs), KeyValueList(values=pairs).ByteSize())
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._count_unreadable()
            return Resource({})

    def scope(self, scope: Scope) -> Scope:
        """Redact an instrumentation scope. Its attributes are never kept."""
        try:
            return Scope(
                self._values.field(scope.name, "scope.name"),
                self._values.field(scope.version, "scope.version"),
            )
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._count_unreadable()
            return Scope()

    def span(self, span: Span, resource: Resource, scope: Scope) -> Span:
        """Redact a span. `resource` and `scope` are redacted already."""
        proto, before = SpanProto.FromString(span.raw), self._values.counts.total()
        proto.DiscardUnknownFields()
        try:
            self._redact_span(span, proto)
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._count_unreadable()
            proto = SpanProto(
                trace_id=proto.trace_id,
                span_id=proto.span_id,
                parent_span_id=proto.parent_span_id,
                flags=proto.flags,
                name=MASKED,
                kind=proto.kind,
                start_time_unix_nano=proto.start_time_unix_nano,
                end_time_unix_nano=proto.end_time_unix_nano,
                status=Status(code=proto.status.code),
            )
        self._mark(proto.attributes, before)
        return Span(proto.SerializeToString(), resource, scope, span.tenant, proto)

    def _redact_span(self, span: Span, proto: SpanProto) -> None:
        if self._without_content is not None:
            self._without_content.span(span, proto, self._values.counts)
        proto.name = self._values.field(proto.name, "span.name")
        proto.trace_state = self._trace_state(proto.trace_state)
        if proto.HasField("status"):
            proto.status.message = self._values.field(proto.status.message, "span.status.message")
        self._values.pairs(proto.attributes)
        for event in proto.events:
            event.name = self._values.field(event.name, "event.name")
            self._values.pairs(event.attributes)
        for link in proto.links:
            link.trace_state = self._trace_state(link.trace_state)
            self._values.pairs(link.attributes)

    def log(self, log: LogRecord, resource: Resource, scope: Scope) -> LogRecord:
        """Redact a log record. `resource` and `scope` are redacted already."""
        proto, before = LogRecordProto.FromString(log.raw), self._values.counts.total()
        proto.DiscardUnknownFields()
        try:
            self._redact_log(log, proto)
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._count_unreadable()
            proto = LogRecordProto(
                trace_id=proto.trace_id,
                span_id=proto.span_id,
                flags=proto.flags,
                time_unix_nano=proto.time_unix_nano,
                observed_time_unix_nano=proto.observed_time_unix_nano,
                severity_number=proto.severity_number,
            )
        self._mark(proto.attributes, before)
        return LogRecord(proto.SerializeToString(), resource, scope, log.tenant, proto)

    def _redact_log(self, log: LogRecord, proto: LogRecordProto) -> None:
        if self._without_content is not None:
            self._without_content.log(log, proto, self._values.counts)
        proto.event_name = self._values.field(proto.event_name, "log.event_name")
        proto.severity_text = self._values.field(proto.severity_text, "log.severity_text")
        if proto.HasField("body"):
            try:
                self._values.body(proto.body, "log.body")
            except DroppedError:
                proto.ClearField("body")
        self._values.pairs(proto.attributes)

    def _count_unreadable(self) -> None:
        """Count a record that cannot be redacted, of which only ids and times are kept. Refusing
        the request instead would make the sender repeat it forever.
        """
        self._values.counts["unreadable", "drop"] += 1

    def _trace_state(self, trace_state: str) -> str:
        if not trace_state:
            return ""
        kept = (self._trace_state_member(member.strip()) for member in trace_state.split(","))
        return ",".join(member for member in kept if member)

    def _trace_state_member(self, member: str) -> str:
        if member.startswith(_TRACESTATE_MEMBER):
            return member
        return self._values.field(member, "span.trace_state")

    def _mark(self, attributes: Repeated[KeyValue], before: int) -> None:
        if self._values.counts.total() > before and not any(
            pair.key == REDACTED_KEY for pair in attributes
        ):
            attributes.insert(0, KeyValue(key=REDACTED_KEY, value=AnyValue(bool_value=True)))

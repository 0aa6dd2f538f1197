"""Takes apart spans onto which the instrumentation of a model client wrote its calls.

LiteLLM writes the details of a call onto the span around it, whoever made that span: an HTTP server
would look like a model call, and the run around its calls would disappear. Such a span is replaced
by itself without the call. What is known of the call

- is dropped if a span of the instrumentation below has the same call, by the id of the response;
- completes the only span below that states no id;
- otherwise becomes a span of its own, after the other calls. Its id is derived, because nobody sent
  it. If there are no other calls, it may be one of several: its tokens are not those of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.invocations.dialects import Dialect
from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.dialects.registry import Classified
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Attributes, Scope, Span, encode_attributes

ONE_OF_SEVERAL = "pathgauge.one_of_several_calls"
"""An attribute of a call that may be one of several, which left no other trace."""

_TOKENS = "gen_ai.usage."


def with_calls_apart(
    spans: Sequence[Span], classified: Sequence[Classified]
) -> Sequence[Span] | None:
    """The spans, with those that hold the call of a model client taken apart; `None` if none does.
    `classified` is what is known of each span.
    """
    writers = {
        span.span_id: writer
        for span, (_, dialects) in zip(spans, classified, strict=True)
        for writer in reversed(dialects)  # the first one counts
        if writer.written_call is not None and not _made(writer, span)
    }
    if not writers:
        return None
    below: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        if span.parent_id in writers:
            below[span.parent_id].append(span)
    return [
        part
        for span in spans
        for part in _parts(span, writers.get(span.span_id), below.get(span.span_id, ()))
    ]


def _made(writer: Dialect, span: Span) -> bool:
    """Whether the whole span is of that instrumentation."""
    return span.scope.name.startswith(writer.scopes) or span.name.startswith(writer.names)


def _parts(span: Span, writer: Dialect | None, children: Sequence[Span]) -> Iterator[Span]:
    if writer is None or writer.written_call is None:
        yield span
        return
    own, call = writer.written_call(span.attributes)
    yield _copy(span, span.scope, own)
    written = [one for one in children if _made(writer, one)]
    ids = [as_id(first([one], writer.fields.response_id)) for one in written]
    scope = Scope(writer.scopes[0])
    if as_id(first([span], writer.fields.response_id)) in ids and None not in ids:
        return
    if not written:
        known = {key: value for key, value in call.items() if not key.startswith(_TOKENS)}
        place = _Place(span.span_id, span.start_ns, span.end_ns)
        yield _call(span, scope, known | {ONE_OF_SEVERAL: True}, place)
    elif None not in ids:
        last = max(one.end_ns for one in written)
        start_ns = min(max(last, span.start_ns), span.end_ns)
        yield _call(span, scope, call, _Place(span.span_id, start_ns, span.end_ns))
    elif len(written) == 1:
        [one] = written
        yield _call(span, scope, call, _Place(one.span_id, one.start_ns, one.end_ns))


class _Place(NamedTuple):
    """Where in the trace a span is."""

    parent_id: str
    start_ns: int
    end_ns: int


def _call(span: Span, scope: Scope, attributes: Attributes, place: _Place) -> Span:
    """A span for the call that was written onto `span`."""

    def put(proto: SpanProto) -> None:
        proto.span_id = bytes(byte ^ 0xFF for byte in proto.span_id)
        proto.parent_span_id = bytes.fromhex(place.parent_id)
        proto.start_time_unix_nano = place.start_ns
        proto.end_time_unix_nano = place.end_ns
        proto.ClearField("status")
        proto.ClearField("name")
        proto.ClearField("flags")

    return _copy(span, scope, attributes, put)


def _copy(
    span: Span,
    scope: Scope,
    attributes: Attributes,
    change: Callable[[SpanProto], None] = lambda proto: None,
) -> Span:
    proto = SpanProto()
    proto.CopyFrom(span.proto)
    del proto.attributes[:]
    proto.attributes.extend(encode_attributes(attributes))
    change(proto)
    return Span(proto.SerializeToString(), span.resource, scope, span.tenant, proto)

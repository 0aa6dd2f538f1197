"""What is wrong with the telemetry of an invocation, except what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pathgauge.collector.core.invocations.grouping import Group
from pathgauge.collector.core.invocations.messages.values import REDACTION_MARKS
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.written_calls import ONE_OF_SEVERAL
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.scorers.types import Flag


def defects(group: Group, agents: Iterable[Node], logs: Sequence[LogRecord]) -> Iterator[Flag]:
    """The flags of the spans and `logs` of an invocation. `agents`: its nodes that are agents."""
    spans = [span for node in group.nodes if node.kind != "other" for span in node.spans]
    is_one_of_several = any(ONE_OF_SEVERAL in span.attributes for span in spans)
    if is_one_of_several or any(node.own_spans != node.spans for node in agents):
        yield "llm_detail_unreliable"
    if any(span.dropped_attributes for span in spans):
        yield "dropped_attributes"
    if any(map(_is_redacted, spans)) or any(map(_is_redacted, logs)):
        yield "redacted"
    if group.entry.span.end_ns < group.entry.span.start_ns:
        yield "clock_skew"


def _is_redacted(record: Span | LogRecord) -> bool:
    return not record.attributes.keys().isdisjoint(REDACTION_MARKS)

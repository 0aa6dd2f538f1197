"""Splits a request, so that each part can go to the process that assembles its traces.

Parts are encoded from the bytes of their records; resources and scopes are encoded once. Records
without a trace (log records without a trace id, own evaluation events) are only counted, so they go
with exactly one part: else they would be counted several times, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar, cast

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.encode import RequestEncoder
from pathgauge.collector.core.otlp.spans import LogRecord, Span

K = TypeVar("K", bound=Hashable)

NO_TRACE = ""
"""Stands for the trace id of a request that has no record with a trace id."""
_FRAMING = 16
"""Upper bound of the tags and lengths that a record adds to a body, and of those of a group."""
_MAX_COUNTED_BYTES = 64
"""Upper bound of the encoding of a record that is only counted."""


def split(batch: Batch, part_of: Callable[[str], K]) -> dict[K, Batch]:
    """The parts of a batch by the part of their trace ids, each in the order of the batch. It is
    the batch itself if there is one part.

    `part_of` is called once for each trace id; with `NO_TRACE` if there is none.
    """
    records = batch.spans or batch.logs
    parts: dict[K, list[Span | LogRecord]] = {}
    of_trace: dict[str, list[Span | LogRecord]] = {}
    for record in records:
        part = of_trace.get(record.trace_id)
        if part is None:
            part = parts.setdefault(part_of(record.trace_id), [])
            of_trace[record.trace_id] = part
        part.append(record)
    if not parts:
        return {part_of(NO_TRACE): batch}
    if len(parts) == 1:
        return dict.fromkeys(parts, batch)
    encoder = RequestEncoder()
    first, *others = parts.items()
    counted = batch.without_trace, batch.own_events
    return {first[0]: _part(batch, encoder, first[1], *counted)} | {
        key: _part(batch, encoder, members) for key, members in others
    }


def as_protobuf(batch: Batch) -> Batch:
    """The batch with a body in protobuf; the batch itself if it has one."""
    if batch.origin.encoding == "protobuf":
        return batch
    records = batch.spans or batch.logs
    return _part(batch, RequestEncoder(), records, batch.without_trace, batch.own_events)


class Pieces(NamedTuple):
    """A batch in pieces of a limited size."""

    fitting: Sequence[Batch]
    """In the order of the batch."""
    too_large: int
    """Number of records that do not fit into any piece."""


def pieces(batch: Batch, max_bytes: int) -> Pieces:
    """Cut a batch so that no body has more than `max_bytes`, which must be 1 KiB at least."""
    encoder = RequestEncoder()
    found: list[Batch] = []
    members: list[Span | LogRecord] = []
    room, too_large = max_bytes, 0
    for record in batch.spans or batch.logs:
        alone = len(record.raw) + encoder.context_bytes(record) + 3 * _FRAMING
        if alone > max_bytes:
            too_large += 1
            continue
        size = len(record.raw) + _FRAMING if members and _share(members[-1], record) else alone
        if size > room:
            found.append(_part(batch, encoder, members))
            members, room, size = [], max_bytes, alone
        members.append(record)
        room -= size
    if members:
        found.append(_part(batch, encoder, members))
    return Pieces([*found, *_counted(batch, encoder, max_bytes)], too_large)


def _share(one: Span | LogRecord, other: Span | LogRecord) -> bool:
    """Whether two adjacent records are encoded in one group."""
    return one.resource is other.resource and one.scope is other.scope


def _counted(batch: Batch, encoder: RequestEncoder, max_bytes: int) -> Iterator[Batch]:
    """Pieces for the records that are only counted."""
    step = max_bytes // _MAX_COUNTED_BYTES - 2
    without_trace = ((n, 0) for n in _steps(batch.without_trace, step))
    own_events = ((0, n) for n in _steps(batch.own_events, step))
    for counts in chain(without_trace, own_events):
        yield _part(batch, encoder, (), *counts)


def _steps(total: int, step: int) -> Iterator[int]:
    return (min(step, total - start) for start in range(0, total, step))


def _part(
    batch: Batch,
    encoder: RequestEncoder,
    records: Sequence[Span | LogRecord],
    without_trace: int = 0,
    own_events: int = 0,
) -> Batch:
    of_traces = batch.origin.signal == "traces"
    return Batch(
        batch.origin._replace(encoding="protobuf"),
        encoder.encode(records, without_trace, own_events),
        cast("tuple[Span, ...]", tuple(records) if of_traces else ()),
        cast("tuple[LogRecord, ...]", () if of_traces else tuple(records)),
        without_trace,
        own_events,
        sent_as=batch.sent_as or batch.origin.encoding,
    )

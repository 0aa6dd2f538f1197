"""Requests as journal rows: batches come in, rows of bytes with checksums go to the database, and
batches come back from it.
"""

from __future__ import annotations

import sqlite3
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import zstandard

from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp import UndecodableError
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.store import Delivery
from pathgauge.collector.store.schema import checksum, insert

COLUMNS = "id, at, wall, tenant, form, traces, head_crc, body_crc, body"
_SELECT_HEADS = "SELECT id, at, wall, tenant, form, traces, head_crc FROM journal"
_TRACE_ID_BYTES = 16
_LONGEST_S = 1e10
"""Three centuries: nothing runs for longer, and sums of such times are still exact to microseconds.
"""
_UNLIMITED = otlp.DecodeLimits(*(sys.maxsize // 100 for _ in fields(otlp.DecodeLimits)))
"""For a body that is not as it was sent: it holds nothing but records that were valid, and may have
outgrown the limits since.
"""


class DamagedError(Exception):
    """A row does not hold what was written."""


class Place(NamedTuple):
    """What the journal says of a row without its body."""

    row: int
    at: float
    wall: float
    tenant: str
    traces: tuple[str, ...]
    """Hex ids of the traces that it has records of."""


class Packer:
    """Turns batches into rows. For one thread: it keeps the memory of the compressor."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1)

    def pack(self, row: int, at: float, wall: float, batch: Batch) -> tuple[Any, ...]:
        """The values of `COLUMNS`."""
        sent_as = (batch.sent_as,) if batch.sent_as is not None else ()
        tenant, form = batch.origin.tenant, " ".join((*batch.origin[1:], *sent_as))
        body = self._compressor.compress(batch.body)
        traces = _packed({record.trace_id for record in batch.spans or batch.logs})
        return (
            row,
            at,
            wall,
            tenant,
            form,
            traces,
            checksum(row, at, tenant, form, traces.hex()),
            zlib.crc32(body),
            body,
        )


def append(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write what `Packer` made."""
    insert(connection, f"INSERT INTO journal ({COLUMNS})", rows)


def rewrite(connection: sqlite3.Connection, row: tuple[Any, ...]) -> None:
    """Put what `Packer` made in the place of the row that has its number."""
    insert(connection, f"INSERT OR REPLACE INTO journal ({COLUMNS})", [row])


def read(connection: sqlite3.Connection, after: int, max_bytes: int) -> list[tuple[Any, ...]]:
    """Rows behind `after`, in order, until they hold `max_bytes`."""
    rows = []
    for row in connection.execute(
        f"SELECT {COLUMNS} FROM journal WHERE id > ? ORDER BY id", (after,)
    ):
        rows.append(row)
        max_bytes -= len(row[-1])
        if max_bytes <= 0:
            break
    return rows


def fetch(connection: sqlite3.Connection, row: int) -> list[tuple[Any, ...]]:
    """One row, if it is there."""
    return connection.execute(f"SELECT {COLUMNS} FROM journal WHERE id = ?", (row,)).fetchall()


def places(connection: sqlite3.Connection, up_to: int) -> Iterator[Place | int]:
    """What rows there are, in order and without their bodies; of a damaged one its number alone."""
    return map(_place, connection.execute(f"{_SELECT_HEADS} WHERE id <= ? ORDER BY id", (up_to,)))


def newest_places(connection: sqlite3.Connection) -> Iterator[Place | int]:
    """All of `places` from the last one on."""
    return map(_place, connection.execute(f"{_SELECT_HEADS} ORDER BY id DESC"))


def unpack(values: tuple[Any, ...]) -> Delivery:
    """The request of a row. Raises `DamagedError`."""
    row, at, _, tenant, form, _, _, _, body = values
    try:
        if not is_sound(values):
            raise DamagedError("checksum")
        transport, signal, encoding, *sent_as = form.split(" ")
        raw = zstandard.ZstdDecompressor().decompress(body)
        batch = _decode(
            Origin(tenant, transport, signal, encoding),
            raw,
            _UNLIMITED if sent_as else otlp.DecodeLimits(),
        )
        return Delivery(row, at, replace(batch, sent_as=sent_as[0]) if sent_as else batch)
    except (AttributeError, TypeError, ValueError, zstandard.ZstdError, UndecodableError) as error:
        raise DamagedError(type(error).__name__) from error


def is_sound(values: tuple[Any, ...]) -> bool:
    """Whether a row has the checksums of what it holds."""
    *head, body_crc, body = values
    return _is_sound_head(tuple(head)) and bool(body_crc == zlib.crc32(body))


def is_possible(at: float) -> bool:
    """Whether a collector can have reached this time of its own. One far beyond would stand still,
    as every second is lost in it.
    """
    return 0 <= at < _LONGEST_S


def _is_sound_head(head: tuple[Any, ...]) -> bool:
    row, at, _, tenant, form, traces, crc = head
    return (
        isinstance(traces, bytes)
        and crc == checksum(row, at, tenant, form, traces.hex())
        and is_possible(at)
    )


def _place(head: tuple[Any, ...]) -> Place | int:
    row, at, wall, tenant, _, traces, _ = head
    return Place(row, at, wall, tenant, _unpacked(traces)) if _is_sound_head(head) else int(row)


def _decode(origin: Origin, body: bytes, limits: otlp.DecodeLimits) -> Batch:
    if origin.signal == "traces":
        decode_spans = (
            otlp.decode_traces if origin.encoding == "protobuf" else otlp.decode_traces_json
        )
        return Batch(
            origin, body, spans=decode_spans(body, tenant=origin.tenant, limits=limits).records
        )
    decode_logs = otlp.decode_logs if origin.encoding == "protobuf" else otlp.decode_logs_json
    logs = decode_logs(body, tenant=origin.tenant, limits=limits)
    return Batch(
        origin,
        body,
        logs=logs.records,
        without_trace=logs.without_trace,
        own_events=logs.own_events,
    )


def _packed(trace_ids: set[str]) -> bytes:
    return bytes.fromhex("".join(sorted(trace_ids)))


def _unpacked(traces: bytes) -> tuple[str, ...]:
    digits = traces.hex()
    size = 2 * _TRACE_ID_BYTES
    return tuple(digits[start : start + size] for start in range(0, len(digits), size))

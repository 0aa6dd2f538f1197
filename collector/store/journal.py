"""Converts batches to rows of the journal and back. Each row has checksums."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import zstandard

from pathgauge.collector.core.otlp import DecodeLimits, UndecodableError
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.decode_batch import decode_batch
from pathgauge.collector.store import Delivery
from pathgauge.collector.store.forwarded_turns import batch_of_turn
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, insert
from pathgauge.collector.store.sqlite.journal_space import row_space

COLUMNS = "id, at, wall, tenant, form, traces, head_crc, body_crc, body"
_SELECT_HEADS = "SELECT id, at, wall, tenant, form, traces, head_crc FROM journal"
_TRACE_ID_BYTES = 16
_MAX_IDS = 200
"""Rows that one statement deletes."""
_SIZE = "length(body) + length(traces) + length(form) + length(tenant)"
TURN = "turn"
"""The form of a row that holds a turn which another scorer has forwarded."""
_MAX_RUNNING_S = 1e10
"""Three centuries. Sums of such times are still exact to microseconds."""
_NO_CRC = 1
"""Not the checksum of an empty body."""
UNLIMITED = DecodeLimits(*(sys.maxsize // 100 for _ in fields(DecodeLimits)))
"""For a body that was re-encoded: all its records were valid when it was sent, but encoded again
they may exceed the limits.
"""
_DAMAGE = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    UndecodableError,
    zstandard.ZstdError,
)
"""What decoding a damaged row may raise."""


class DamagedError(Exception):
    """A row is not what was written."""


class RowHead(NamedTuple):
    """A row without its body."""

    row: int
    at: float
    wall: float
    tenant: str
    traces: tuple[str, ...]
    """Hex ids of the traces that have records in it."""


class Released(NamedTuple):
    """Rows that were deleted."""

    rows: int = 0
    space: int = 0
    """In bytes."""


class Packer:
    """Converts batches to rows. For one thread, because it reuses the compressor."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1)

    def pack(self, row: int, at: float, wall: float, batch: Batch) -> tuple[Any, ...]:
        """The values of `COLUMNS`."""
        tenant, form = batch.origin.tenant, " ".join(batch.origin[1:])
        if batch.sent_as is not None:
            form += f" {batch.sent_as}"
        body = self._compressor.compress(batch.body)
        trace_ids = {record.trace_id for record in batch.spans or batch.logs}
        if batch.turn is not None:
            form, trace_ids = TURN, {batch.turn.key[1]}
        traces = _packed(trace_ids)
        return (
            row,
            at,
            wall,
            tenant,
            form,
            traces,
            _head_crc(row, at, tenant, form, traces),
            zlib.crc32(body),
            body,
        )


def append(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows of a `Packer`."""
    insert(connection, f"INSERT INTO journal ({COLUMNS})", rows)


def release(connection: Connection, ids: Sequence[int]) -> Released:
    """Delete rows."""
    rows = space = 0
    for start in range(0, len(ids), _MAX_IDS):
        chunk = ids[start : start + _MAX_IDS]
        where = f"WHERE id IN ({','.join('?' * len(chunk))})"
        space += sum(
            row_space(size)
            for (size,) in connection.execute(f"SELECT {_SIZE} FROM journal {where}", chunk)
        )
        rows += connection.execute(f"DELETE FROM journal {where}", chunk).rowcount
    return Released(rows, space)


def count(connection: Connection) -> tuple[int, int]:
    """The number of rows, and the space that they take."""
    rows = space = 0
    for (size,) in connection.execute(f"SELECT {_SIZE} FROM journal"):
        rows += 1
        space += row_space(size)
    return rows, space


def row_size(row: tuple[Any, ...]) -> int:
    """The size of the texts and blobs of a row of a `Packer`."""
    _, _, _, tenant, form, traces, _, _, body = row
    return len(body) + len(traces) + len(form) + len(tenant)


def rewrite(connection: Connection, row: tuple[Any, ...]) -> None:
    """Replace the row that has the same number."""
    insert(connection, f"INSERT OR REPLACE INTO journal ({COLUMNS})", [row])


def read(connection: Connection, after: int, max_bytes: int) -> list[tuple[Any, ...]]:
    """Rows after `after`, in order, until their bodies reach `max_bytes`."""
    rows = []
    for row in connection.execute(
        f"SELECT {COLUMNS} FROM journal WHERE id > ? ORDER BY id", (after,)
    ):
        rows.append(row)
        max_bytes -= len(row[-1])
        if max_bytes <= 0:
            break
    return rows


def fetch(connection: Connection, row: int) -> list[tuple[Any, ...]]:
    """One row, or none if it does not exist."""
    return connection.execute(f"SELECT {COLUMNS} FROM journal WHERE id = ?", (row,)).fetchall()


def heads(connection: Connection, up_to: int) -> Iterator[RowHead | int]:
    """All rows in order, without their bodies; of a damaged row only its number."""
    return map(_head, connection.execute(f"{_SELECT_HEADS} WHERE id <= ? ORDER BY id", (up_to,)))


def heads_after(connection: Connection, after: int) -> Iterator[RowHead | int]:
    """The same for the rows after `after`."""
    return map(_head, connection.execute(f"{_SELECT_HEADS} WHERE id > ? ORDER BY id", (after,)))


def newest_heads(connection: Connection) -> Iterator[RowHead | int]:
    """The same as `heads`, from the last row to the first."""
    return map(_head, connection.execute(f"{_SELECT_HEADS} ORDER BY id DESC"))


def unpack(values: tuple[Any, ...]) -> Delivery:
    """The request of a row. Raises `DamagedError`."""
    row, at, _, tenant, form, _, _, _, body = values
    try:
        if not is_sound(values):
            raise DamagedError("checksum")
        raw = zstandard.ZstdDecompressor().decompress(body)
        if form == TURN:
            return Delivery(row, at, batch_of_turn(raw))
        transport, signal, encoding, *sent_as = form.split(" ")
        origin = Origin(tenant, transport, signal, encoding)
        if not sent_as:
            return Delivery(row, at, decode_batch(origin, raw, DecodeLimits()).batch)
        batch = decode_batch(origin, raw, UNLIMITED).batch
        return Delivery(row, at, replace(batch, sent_as=sent_as[0]))
    except _DAMAGE as error:
        raise DamagedError(type(error).__name__) from error


def is_sound(values: tuple[Any, ...]) -> bool:
    """Whether the checksums of a row match its values."""
    *head, body_crc, body = values
    return _is_sound_head(tuple(head)) and bool(body_crc == zlib.crc32(body))


def head(values: tuple[Any, ...]) -> RowHead | int:
    """The row without its body; of a row with a damaged head only its number."""
    return _head(values[:7])


def renumbered(values: tuple[Any, ...], row: int, at: float) -> tuple[Any, ...]:
    """The same request under another number and time. A damaged body stays damaged."""
    _, _, wall, tenant, form, traces, _, *body = values
    return (row, at, wall, tenant, form, traces, _head_crc(row, at, tenant, form, traces), *body)


def unreadable(
    values: tuple[Any, ...], row: int, at: float, trace_ids: set[str]
) -> tuple[Any, ...]:
    """A row that says of these traces that a request of theirs is damaged."""
    _, _, wall, tenant, form, *_ = values
    traces = _packed(trace_ids)
    crc = _head_crc(row, at, tenant, form, traces)
    return (row, at, wall, tenant, form, traces, crc, _NO_CRC, b"")


def is_possible(at: float) -> bool:
    """Whether a running time is plausible. A much larger one would stand still, because a second
    added to it is lost in rounding.
    """
    return 0 <= at < _MAX_RUNNING_S


def _is_sound_head(head: tuple[Any, ...]) -> bool:
    row, at, _, tenant, form, traces, crc = head
    return (
        isinstance(traces, bytes)
        and crc == _head_crc(row, at, tenant, form, traces)
        and is_possible(at)
    )


def _head_crc(row: int, at: float, tenant: str, form: str, traces: bytes) -> int:
    return checksum(row, at, tenant, form, traces.hex())


def _head(values: tuple[Any, ...]) -> RowHead | int:
    row, at, wall, tenant, _, traces, _ = values
    if not _is_sound_head(values):
        return int(row)
    return RowHead(row, at, wall, tenant, _unpacked(traces))


def _packed(trace_ids: set[str]) -> bytes:
    return bytes.fromhex("".join(sorted(trace_ids)))


def _unpacked(traces: bytes) -> tuple[str, ...]:
    digits = traces.hex()
    size = 2 * _TRACE_ID_BYTES
    return tuple(digits[start : start + size] for start in range(0, len(digits), size))

"""The first page of a database, which says where its tables are: a damaged file comes in, and may
be read as if that page were whole.

Our tables are made in one order and none is ever dropped, so that they begin where those of an
empty database begin, or of an empty one that a purge has compacted. Each begins with its kind,
which tells one from the other, and both from a file that is neither.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.store.files import PAGE_BYTES
from pathgauge.collector.store.schema import MIGRATIONS

_KINDS = {"table": b"\x05\x0d", "index": b"\x02\x0a"}
"""How the first page of a tree may begin: https://www.sqlite.org/fileformat2.html#b_tree_pages."""
_MAX_LOST = 3
"""Trees of which the first page may be damaged, too: less than half of those by which a compacted
database differs from any other.
"""


class _Known(NamedTuple):
    page: bytes
    trees: Mapping[str, int]
    """The first page of each table and index."""
    kinds: Mapping[int, bytes]
    """How these pages may begin."""


@contextmanager
def put_back(database: Path, trees: Mapping[str, int]) -> Iterator[None]:
    """Meanwhile the file has the first page that goes with its other ones, if that is known;
    afterwards, the one that was found.

    `trees` is where the file itself says that its tables and indexes begin, nothing if it cannot be
    trusted.
    """
    known = min(_known(), key=lambda known: _lost(database, known))
    elsewhere = sum(trees.get(name) != page for name, page in known.trees.items())
    # One number that differs is a damaged one. A table that a migration added to a file in use is
    # elsewhere, and so is its index.
    if _lost(database, known) > _MAX_LOST or (trees and elsewhere != 1):
        yield
        return
    with database.open("rb") as file:
        found = file.read(PAGE_BYTES)
    _write(database, known.page)
    try:
        yield
    finally:
        _write(database, found)


def _lost(database: Path, known: _Known) -> int:
    """How many trees do not begin where they should."""
    lost = 0
    with database.open("rb") as file:
        for page, kinds in known.kinds.items():
            file.seek((page - 1) * PAGE_BYTES)
            lost += (file.read(1) or b"?") not in kinds
    return lost


def _write(database: Path, page: bytes) -> None:
    with database.open("r+b") as file:
        file.write(page)


@cache
def _known() -> Sequence[_Known]:
    """Of each version, the latest one first."""
    return [
        _made(version, compacted=compacted)
        for version in range(len(MIGRATIONS), 0, -1)
        for compacted in (False, True)
    ]


def _made(version: int, *, compacted: bool) -> _Known:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        empty.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        empty.executescript("".join(MIGRATIONS[:version]))
        if compacted:
            empty.execute("VACUUM")
        found = empty.execute("SELECT name, rootpage, type FROM sqlite_schema").fetchall()
        raw = bytearray(empty.serialize()[:PAGE_BYTES])
    raw[18:20] = b"\x02\x02"  # there is a write-ahead log
    raw[24:28] = (
        b"\xff" * 4
        # a count of changes that is not the one of the size in the header: the size of the file holds
    )
    return _Known(
        bytes(raw),
        {name: page for name, page, _ in found},
        {page: _KINDS[kind] for _, page, kind in found},
    )

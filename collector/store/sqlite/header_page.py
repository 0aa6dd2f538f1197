"""Repairs the first page of a damaged database, so that its tables can still be read. This page
says where the tables are.

No copy of the page has to be stored. The tables are always created in the same order, and none is
ever dropped. So their first pages have the same numbers as in an empty database, or as in an empty
database after VACUUM, which a purge may run. Each of these pages begins with a byte for its kind.
These bytes tell which of the two layouts a file has, or that it has neither.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.store.schema import MIGRATIONS
from pathgauge.collector.store.sqlite.files import PAGE_BYTES

_KINDS = {"table": b"\x05\x0d", "index": b"\x02\x0a"}
"""The first bytes of the root page of a tree: https://www.sqlite.org/fileformat2.html#b_tree_pages.
"""
_MAX_MISMATCHES = 3
"""Root pages that may be damaged as well. It is less than half of the root pages in which the
layouts with and without VACUUM differ.
"""


class _Layout(NamedTuple):
    """A known position of the tables in the file."""

    page: bytes
    """The first page."""
    roots: Mapping[str, int]
    """The number of the root page of each table and index."""
    kinds: Mapping[int, bytes]
    """The bytes with which these pages may begin."""


@contextmanager
def repaired(database: Path, roots: Mapping[str, int]) -> Iterator[None]:
    """Within the context the file has the first page that matches its other pages, if its layout is
    known. Afterwards the original first page is back.

    `roots` are the root pages according to the file itself; empty if that cannot be trusted.
    """
    layout = min(_layouts(), key=lambda one: _mismatches(database, one))
    different = sum(roots.get(name) != page for name, page in layout.roots.items())
    # A single different number is damage. After a migration of a file in use, at least two numbers
    # differ: those of the added table and of its index.
    if _mismatches(database, layout) > _MAX_MISMATCHES or (roots and different != 1):
        yield
        return
    with database.open("rb") as file:
        original = file.read(PAGE_BYTES)
    _write(database, layout.page)
    try:
        yield
    finally:
        _write(database, original)


def _mismatches(database: Path, layout: _Layout) -> int:
    """How many root pages of the layout do not begin with their kind."""
    mismatches = 0
    with database.open("rb") as file:
        for page, kinds in layout.kinds.items():
            file.seek((page - 1) * PAGE_BYTES)
            mismatches += (file.read(1) or b"?") not in kinds
    return mismatches


def _write(database: Path, page: bytes) -> None:
    with database.open("r+b") as file:
        file.write(page)


@cache
def _layouts() -> Sequence[_Layout]:
    """The layouts of all schema versions, the latest version first."""
    return [
        _layout(version, vacuumed=vacuumed)
        for version in range(len(MIGRATIONS), 0, -1)
        for vacuumed in (False, True)
    ]


def _layout(version: int, *, vacuumed: bool) -> _Layout:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        empty.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        empty.executescript("".join(MIGRATIONS[:version]))
        if vacuumed:
            empty.execute("VACUUM")
        found = empty.execute("SELECT name, rootpage, type FROM sqlite_schema").fetchall()
        raw = bytearray(empty.serialize()[:PAGE_BYTES])
    raw[18:20] = b"\x02\x02"  # the database has a write-ahead log
    # This change counter differs from the one beside the database size in the header. So SQLite
    # ignores that size, and uses the size of the file.
    raw[24:28] = b"\xff" * 4
    return _Layout(
        bytes(raw),
        {name: page for name, page, _ in found},
        {page: _KINDS[kind] for _, page, kind in found},
    )

"""Overwrites what SQLite leaves in the unallocated part of a page.

`secure_delete` overwrites deleted cells, freed pages and overflow pages. But when SQLite balances a
tree, it may rebuild a page and leave copies of its cells in the gap between the array of cell
pointers and the first cell: https://www.sqlite.org/fileformat2.html#b_tree_pages. The copy stays
when its row is deleted later. Pages have no checksum, and nothing reads the gap, so it can be
overwritten in the file itself: a crash in between harms nothing.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

_DATABASE_HEADER_BYTES = 100
"""They precede the page header in the first page."""
_CELLS = struct.Struct(">3x2H")
"""In the header of a page: the number of cells, and where the first of them begins."""
_HEADER_BYTES = {0x02: 12, 0x05: 12, 0x0A: 8, 0x0D: 8}
"""The size of the page header, by the kind of page in the first byte. Other pages, which belong to
long rows or are free, begin with the number of a page, so with 0 up to 128 GiB.
"""
MAX_PAGES = 1 << 24
"""From this page number on, other pages may begin like those of a tree."""
_ZEROS = bytes(1 << 16)
"""As long as the largest page."""


def overwrite(file: int, pages: Iterable[int], page_bytes: int) -> int:
    """Overwrite the gaps of these pages, from 1, of an open database; returns how many were not
    empty. Nobody else may write to the file meanwhile. Raises OSError.
    """
    changed = 0
    for number in pages:
        at = (number - 1) * page_bytes
        page = os.pread(file, page_bytes, at)
        if len(page) < page_bytes:
            continue
        begin, end = gap(page, number)
        if not page.startswith(_ZEROS[begin:end], begin):
            os.pwrite(file, _ZEROS[begin:end], at + begin)
            changed += 1
    return changed


def gap(page: bytes, number: int) -> tuple[int, int]:
    """Where the gap begins and ends; an empty one for a page that has none, or is damaged."""
    header = _DATABASE_HEADER_BYTES if number == 1 else 0
    if page[header] not in _HEADER_BYTES or number >= MAX_PAGES:
        return 0, 0
    cells, end = _CELLS.unpack_from(page, header)
    begin = header + _HEADER_BYTES[page[header]] + 2 * cells
    return (begin, end) if begin < end <= len(page) else (0, 0)

"""The space in the file that a row of the journal takes.

SQLite can measure the space of a table only by reading all of its pages. Results and requests share
a file, and each has a limit, so the space of the requests is calculated from their sizes.
"""

from __future__ import annotations

from pathgauge.collector.store.sqlite.files import PAGE_BYTES

_ROW_BYTES, _CELL_BYTES = 38, 8
"""What a row takes beside its texts and blobs: numbers, and its place in the page."""
_LEAF_BYTES, _OVERFLOW_BYTES = PAGE_BYTES - 8, PAGE_BYTES - 4
"""Space for rows in a page of the table, and for the rest of a long row in a further page."""
_MAX_LOCAL_BYTES, _MIN_LOCAL_BYTES = PAGE_BYTES - 35, (PAGE_BYTES - 12) * 32 // 255 - 23
"""The part of a row that is in a page of the table: https://www.sqlite.org/fileformat2.html."""


def row_space(size: int) -> int:
    """The space of a row, from the size of its texts and blobs, in bytes. The rest of a page that
    has no space for another row of this size counts as taken, so the sum for rows of different
    sizes may be too large.
    """
    size += _ROW_BYTES
    local, overflow_pages = size, 0
    if size > _MAX_LOCAL_BYTES:
        local = _MIN_LOCAL_BYTES + (size - _MIN_LOCAL_BYTES) % _OVERFLOW_BYTES
        if local > _MAX_LOCAL_BYTES:
            local = _MIN_LOCAL_BYTES
        overflow_pages = -(-(size - local) // _OVERFLOW_BYTES)
    return overflow_pages * PAGE_BYTES + PAGE_BYTES // max(1, _LEAF_BYTES // (local + _CELL_BYTES))

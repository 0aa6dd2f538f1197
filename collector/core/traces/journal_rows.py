"""Which rows of the journal are still needed: traces take rows and give them back, rows that nobody
needs go out.
"""

from __future__ import annotations

from collections.abc import Iterable


class Rows:
    """How many traces need each row. A request is one row, and often holds spans of many traces."""

    def __init__(self) -> None:
        self._users: dict[int, int] = {}
        self._free: dict[int, None] = {}

    def __len__(self) -> int:
        """How many rows are needed."""
        return len(self._users)

    def take(self, row: int) -> None:
        """Note one more user of `row`, which after a restart others may have given back already."""
        self._free.pop(row, None)
        self._users[row] = self._users.get(row, 0) + 1

    def give_back(self, rows: Iterable[int]) -> None:
        """Note one user less of each of `rows`."""
        for row in rows:
            users = self._users[row] - 1
            if users:
                self._users[row] = users
            else:
                del self._users[row]
                self._free[row] = None

    @property
    def any_released(self) -> bool:
        """Whether `released` has something to tell."""
        return bool(self._free)

    def released(self) -> list[int]:
        """The rows that nobody needs any more; each is told once."""
        free, self._free = list(self._free), {}
        return free

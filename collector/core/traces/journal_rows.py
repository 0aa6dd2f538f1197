"""Reference counts of journal rows, so that rows which no trace needs any more can be deleted."""

from __future__ import annotations

from collections.abc import Iterable


class JournalRows:
    """Counts the users of each row. A row is one export request, which often contains spans of many
    traces.
    """

    def __init__(self) -> None:
        self._users: dict[int, int] = {}
        self._free: dict[int, None] = {}

    def __len__(self) -> int:
        """Number of rows in use."""
        return len(self._users)

    def take(self, row: int) -> None:
        """Add a user of `row`. After a restart, `row` may already have been released by others."""
        self._free.pop(row, None)
        self._users[row] = self._users.get(row, 0) + 1

    def release(self, rows: Iterable[int]) -> None:
        """Remove one user of each of `rows`."""
        for row in rows:
            users = self._users[row] - 1
            if users:
                self._users[row] = users
            else:
                del self._users[row]
                self._free[row] = None

    @property
    def any_released(self) -> bool:
        """Whether `released` would return anything."""
        return bool(self._free)

    def released(self) -> list[int]:
        """Rows without users. Each is returned once."""
        free, self._free = list(self._free), {}
        return free

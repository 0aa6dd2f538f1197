"""Counts the transactions that were lost at the damaged end of a write-ahead log.

SQLite reads a log up to the first frame with a wrong checksum, and silently ignores the rest. After
a crash, at most one transaction is there, which was not acknowledged. More of them mean that the
disk damaged data that was synced.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct(">4I 8s 2I")
"""Magic number, version, page size, number of checkpoints, salts, checksums:
https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""
_FRAME = struct.Struct(">2I 8s 2I")
"""Page number, size of the database after a commit (0: not the end of one), salts, checksums."""


@dataclass(frozen=True, slots=True)
class Log:
    """The frames of a log file, valid or not."""

    commits: tuple[int, ...] = ()
    """Indexes of the frames that end a transaction, without leftovers from before a checkpoint."""

    def lost(self, read: int) -> int:
        """The number of transactions after the first `read` frames, which SQLite has read."""
        return sum(index >= read for index in self.commits)


def scan(path: Path, page_bytes: int) -> Log:
    """Read the headers of all frames. To be called before SQLite opens the file, because SQLite
    overwrites the frames that it ignores.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return Log()
            salts = {_HEADER.unpack(header)[4]}
            commits = []
            index = 0
            while len(frame := file.read(_FRAME.size)) == _FRAME.size:
                _, size, salt, _, _ = _FRAME.unpack(frame)
                if index == 0:
                    salts.add(salt)  # either of the two may be damaged
                if size and salt in salts:
                    commits.append(index)
                file.seek(page_bytes, 1)
                index += 1
            return Log(tuple(commits))
    except FileNotFoundError:
        return Log()

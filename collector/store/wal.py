"""The end of a write-ahead log that SQLite passed over: the log comes in, how many commits were
lost with it goes out.

SQLite takes a log up to the first frame whose checksum is wrong, and says nothing of what comes
after. A crash leaves at most one commit there, which nobody was told of. More of them mean that the
disk has damaged what it had synced.
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
    """The frames that a file has, valid or not."""

    commits: tuple[int, ...] = ()
    """The places of those that end a transaction and are not left over from before a checkpoint."""

    def lost(self, taken: int) -> int:
        """How many commits are behind the frames that SQLite took."""
        return sum(place >= taken for place in self.commits)


def look(path: Path, page_bytes: int) -> Log:
    """Read the headers of all frames; to be done before SQLite opens the file, as it writes over
    what it passes over.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return Log()
            salts = {_HEADER.unpack(header)[4]}
            commits = []
            place = 0
            while len(frame := file.read(_FRAME.size)) == _FRAME.size:
                _, size, salt, _, _ = _FRAME.unpack(frame)
                if place == 0:
                    salts.add(salt)  # either may be what was damaged
                if size and salt in salts:
                    commits.append(place)
                file.seek(page_bytes, 1)
                place += 1
            return Log(tuple(commits))
    except FileNotFoundError:
        return Log()

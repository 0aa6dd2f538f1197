"""Reads the frames of a write-ahead log: which pages are in it, and how many transactions were lost
at its damaged end.

SQLite reads a log up to the first frame with a wrong checksum, and silently ignores the rest. After
a crash, at most one transaction is there, which was not acknowledged. More of them mean that the
disk damaged data that was synced.
"""

from __future__ import annotations

import os
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


def pages(path: Path, frames: int) -> set[int]:
    """The numbers of the pages in the first `frames` frames. Raises OSError."""
    if frames <= 0:
        return set()
    with path.open("rb", buffering=0) as file:
        log = file.fileno()
        size = _HEADER.unpack(os.pread(log, _HEADER.size, 0))[2] + _FRAME.size
        return {
            _FRAME.unpack(os.pread(log, _FRAME.size, _HEADER.size + index * size))[0]
            for index in range(frames)
        }


class Counter:
    """Counts the frames of a log while it grows. Frames of a transaction that was rolled back count
    until others replace them.
    """

    def __init__(self, path: Path) -> None:
        self.begun = 0
        """How often the log was begun anew."""
        self._path = path
        self._log: int | None = None
        self._frames, self._salts = 0, b""

    def frames(self) -> int:
        """The number of frames since the log was begun anew. Raises OSError."""
        if self._log is None:
            if not self._path.exists():
                return 0
            self._log = os.open(self._path, os.O_RDONLY)
        header = os.pread(self._log, _HEADER.size, 0)
        if len(header) < _HEADER.size:
            return 0
        _, _, page_bytes, _, salts, *_ = _HEADER.unpack(header)
        if salts != self._salts:
            self._frames, self._salts = 0, salts
            self.begun += 1
        while self._is_frame(_HEADER.size + self._frames * (page_bytes + _FRAME.size)):
            self._frames += 1
        return self._frames

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def _is_frame(self, at: int) -> bool:
        assert self._log is not None
        frame = os.pread(self._log, _FRAME.size, at)
        return len(frame) == _FRAME.size and _FRAME.unpack(frame)[2] == self._salts

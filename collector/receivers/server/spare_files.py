"""Keeps some file descriptors free for the connections of one server.

A process that has used up its descriptors cannot accept a connection, not even to tell that it has
a problem. So some are opened early, and closed when they are needed.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

NO_FILE_IS_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process, or a system, that has no file descriptor left."""


class SpareFiles:
    """Up to `most` descriptors."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: list[int] = []

    def refill(self) -> None:
        """Open as many as are missing and the process may open."""
        try:
            while len(self._files) < self._most:
                self._files.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            if error.errno not in NO_FILE_IS_LEFT:
                raise

    def accept(self, listener: socket.socket) -> tuple[socket.socket, Any] | None:
        """Accept a connection with one of them; `None` if there is none, or no connection."""
        self.refill()
        if not self._files:
            return None
        os.close(self._files.pop())
        try:
            connection, address = listener.accept()
        except OSError:
            # The system says that no file is left before it looks for a connection. Whoever asks
            # next would get this one.
            self.refill()
            return None
        connection.setblocking(False)
        return connection, address

    def close(self) -> None:
        """Close all of them for good."""
        self._most = 0
        while self._files:
            os.close(self._files.pop())

"""Ports for servers that are restarted, or that cannot choose one themselves."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from random import SystemRandom
from tempfile import gettempdir

KEPT_S = 3600.0
"""Longer than a test runs."""
_TAKEN = Path(gettempdir()) / "pathgauge-test-ports"


def free_port() -> int:
    """A port below the range that the kernel assigns, so that it stays free during restarts. No
    other test gets it, in this process or another, while its server is not started yet.
    """
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) != 0 and _take(port):
                return port


def _take(port: int) -> bool:
    """Whether nobody else has taken the port."""
    _TAKEN.mkdir(exist_ok=True)
    mark = _TAKEN / str(port)
    try:
        if time.time() - mark.stat().st_mtime > KEPT_S:
            mark.unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

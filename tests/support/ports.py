"""Ports for servers that are restarted, or that cannot choose one themselves."""

from __future__ import annotations

import socket
from random import SystemRandom


def free_port() -> int:
    """A port below the range that the kernel assigns, so that it stays free during restarts."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) != 0:
                return port

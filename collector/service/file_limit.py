"""Fits the connections into the limit on open files, so that they always leave enough for the
store.

A process often starts with a limit of 1024 that it may raise itself. If the limit is too low and
may not be raised, fewer connections are allowed.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping

from pathgauge.collector.core.documents import ConfigError, Problem

RESERVED = 256
"""Descriptors for the store, the log, listening sockets, and everything else but connections."""
MIN_RESERVED = 64
"""The same with a low limit: 25 when idle, the rest for reloads and for connections to judges."""
MIN_FILES = 96
"""With fewer, the collector does not start."""


def fit_connections(wanted: Mapping[str, int]) -> Mapping[str, int]:
    """The most connections to each server, at least one. Raises `ConfigError` if the limit is too
    low.
    """
    total, limit = sum(wanted.values()), hard_limit()
    if limit is None or limit >= total + RESERVED:
        return wanted
    if limit < MIN_FILES:
        text = f"open files (ulimit -Hn): found {limit}, expected at least {MIN_FILES}"
        raise ConfigError([Problem("", None, (), text)])
    left = limit - min(RESERVED, max(MIN_RESERVED, limit // 2))
    return {name: max(1, min(most, most * left // total)) for name, most in wanted.items()}


def raise_file_limit(connections: int) -> None:
    """Raise the limit of this process to what `connections` need, as far as it may be raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed, limit = connections + RESERVED, hard_limit()
    if limit is not None:
        needed = min(needed, limit)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def hard_limit() -> int | None:
    """How many files this process may have open, once it has raised its limit; `None`: any."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if hard == resource.RLIM_INFINITY else hard

"""Raises the limit on open files, so that connections never leave too few for the store.

A process often starts with a limit of 1024 that it may raise itself.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator

RESERVED = 256
"""Descriptors for the store, the log, listening sockets, and everything else but connections."""


def raise_file_limit(connections: int) -> Iterator[str]:
    """Raise the limit of this process to what `connections` need; yields a warning if the hard
    limit is too low.
    """
    needed = connections + RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _is_enough(soft, needed):
        return
    if not _is_enough(hard, needed):
        yield (
            f"open files (ulimit -Hn): found {hard}, expected at least {needed}: connections may"
            " leave none for the store"
        )
        needed = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _is_enough(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed

"""The limit on open files: how many connections there can be comes in, a limit that has room for
all and for the store is put in force.

A process often starts with a limit of 1024 that it may raise itself.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator

RESERVED = 256
"""Descriptors of the store, the log, the listeners, and everything else that is no connection."""


def allow(connections: int) -> Iterator[str]:
    """Raise the limit of this process to what is needed, as far as it may; yields a warning when
    that is not far enough.
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
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed if _is_enough(hard, needed) else hard, hard))


def _is_enough(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed

"""Makes the process use less memory than by default, if there are limits.

By default, the C library maps 64 MiB for every thread that allocates memory, and 8 MiB for its
stack. That is a tenth of what is ever used, but a limit on the address space counts all of it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Collection
from contextlib import suppress

from pathgauge.collector.service.memory.limits import MemoryLimit

STACK_BYTES = 2 << 20
MAX_POOL_THREADS = min(8, (os.cpu_count() or 1) + 4)
"""Helper threads of the event loop."""
MAX_THREADS = min(16, max(2, os.cpu_count() or 1)) + MAX_POOL_THREADS + 8
"""All threads: the first part are those of gRPC."""

_M_ARENA_MAX = -8
"""The parameter number of mallopt(3)."""
_PTHREAD_ATTRIBUTES_BYTES = 256
"""More than pthread_attr_t has on any machine."""


def save_memory(limits: Collection[MemoryLimit]) -> None:
    """To be called before threads start and scorers are loaded."""
    if not limits:
        return
    with suppress(AttributeError, OSError):  # other C libraries have none of these
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        if any(limit.kind != "resident" for limit in limits):
            _limit_stacks(libc)
    # It maps memory for every core. No scorer of ours needs its threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _limit_stacks(libc: ctypes.CDLL) -> None:
    """Map smaller stacks for the threads of Python, and for those of gRPC."""
    threading.stack_size(STACK_BYTES)
    attributes = ctypes.create_string_buffer(_PTHREAD_ATTRIBUTES_BYTES)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK_BYTES))
    libc.pthread_setattr_default_np(attributes)

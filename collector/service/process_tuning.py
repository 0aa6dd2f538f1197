"""Tunes the interpreter and the memory allocator for a long-running server.

Their defaults suit scripts. In a collector they cost memory, or delay the answers to senders.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SWITCH_S = 0.0005
"""How long a thread may hold the interpreter lock while another one waits for it."""
RETURNED_BYTES = 2 << 20
"""Blocks of at least this size go back to the system as soon as they are freed. The state of zstd,
with which librdkafka compresses every batch, is smaller: mapping it anew takes twice as long as
using it.
"""

_M_MMAP_THRESHOLD = -3
"""The parameter number of mallopt(3)."""


@contextmanager
def starting() -> Iterator[None]:
    """Within the context there are no collections: modules are loaded and the state of hundreds of
    thousands of traces is restored, and nothing of it is garbage.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def tune(*, answers: bool = True) -> None:
    """To be called once, after all modules are loaded. `answers`: whether senders wait for this
    process.
    """
    # The core makes no reference cycles, but holds hundreds of thousands of spans. Every full
    # collection would walk all of them and find nothing.
    gc.freeze()
    gc.set_threshold(50_000, 100, 100)
    # The event loop releases the interpreter lock with every system call. By default a busy
    # pipeline thread then keeps it for 5 ms, and senders wait half a second instead of 50 ms. When
    # nobody waits, the pipeline threads of several partitions would only interrupt each other.
    if answers:
        sys.setswitchinterval(SWITCH_S)
    # glibc keeps freed memory of large requests for each thread that decodes them: twice as much as
    # they need together.
    with suppress(AttributeError, OSError):  # other C libraries have no mallopt
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, RETURNED_BYTES)

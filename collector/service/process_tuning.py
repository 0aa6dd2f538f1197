"""The interpreter and its memory, set for a process that serves: nothing comes in, settings of the
process change.

Each default is good for a script, and costs a collector memory or senders their time.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

SWITCH_S = 0.0005
"""How long a thread may hold the interpreter while another one waits for it."""
RETURNED_BYTES = 1024 * 1024
"""Blocks of that size go back to the system as soon as they are free."""

_M_MMAP_THRESHOLD = -3
"""Of mallopt(3)."""


def tune() -> None:
    """Call it once everything is loaded."""
    # The core makes no reference cycles, and holds hundreds of thousands of spans that every full
    # collection would walk in vain.
    gc.freeze()
    gc.set_threshold(50_000, 100, 100)
    # The event loop gives the interpreter up with every call to the system. By default a busy
    # pipeline keeps it for 5 ms each time, and senders wait for half a second where they could be
    # answered within 50 ms.
    sys.setswitchinterval(SWITCH_S)
    # glibc keeps what large requests have freed for each of the threads that decode them, twice as
    # much as they need together.
    with suppress(AttributeError, OSError):  # other libraries have no such thing
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, RETURNED_BYTES)

"""Ends a process whose work is done, or cannot be done any more, without the shutdown of the
interpreter.

Threads of gRPC and librdkafka may still run then. The shutdown ends each when it next takes the
interpreter's lock, in the middle of C++ code, which may abort the whole process: a service manager
would see a crash after an orderly stop.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

FAILED = 1
"""The status of a process that ends because a part of it has ended."""


def end_process(status: int = 0) -> NoReturn:
    """End with this status."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there may be none, or a closed one
            stream.flush()
    os._exit(status)

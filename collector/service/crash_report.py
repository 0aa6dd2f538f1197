"""What the log has of a crash in a library that is not Python, such as the client of Kafka.

Such a library ends the process with a message of its own, or with none. It does not say what called
it.
"""

from __future__ import annotations

import faulthandler
from contextlib import suppress


def report_crashes() -> None:
    """From now on, a crash writes the stack of each thread to stderr, as plain text."""
    with suppress(RuntimeError, OSError, ValueError):  # there may be no stderr, or a closed one
        faulthandler.enable()

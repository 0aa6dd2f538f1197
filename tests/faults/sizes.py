"""The sizes of all tests: small by default, large for `make faults`."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("FAULTS"))


def times(short: int, long: int) -> int:
    """The size for this run."""
    return long if LONG else short

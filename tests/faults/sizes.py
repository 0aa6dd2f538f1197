"""How much of everything: little by default, a lot for `make faults`."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("FAULTS"))


def times(short: int, long: int) -> int:
    """One of the two, by the form of the run."""
    return long if LONG else short

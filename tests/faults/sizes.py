"""The sizes of all tests: small by default, large for `make faults`."""

from __future__ import annotations

import os
from typing import TypeVar

NumberT = TypeVar("NumberT", int, float)

LONG = bool(os.environ.get("FAULTS"))


def times(short: NumberT, long: NumberT) -> NumberT:
    """The size for this run."""
    return long if LONG else short

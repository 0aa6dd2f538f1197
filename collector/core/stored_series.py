"""The form in which all that is counted or learned is stored: series with label values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pathgauge.scorers.types import Json


class Row(NamedTuple):
    """A series in the store."""

    key: Sequence[str]
    """Its name and label values."""
    state: Sequence[Json] | None
    """Its numbers, or other JSON values; `None` deletes it."""

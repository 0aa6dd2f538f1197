"""Long lists of parameters: the default tests run some of them, the slow tests the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(values: Iterable[Any], keep: int) -> list[Any]:
    """All values as parameters. All but `keep` of them, evenly spread, are marked as slow."""
    listed = list(values)
    kept = {round(index * (len(listed) - 1) / max(keep - 1, 1)) for index in range(keep)}
    return [
        value if index in kept else pytest.param(value, marks=pytest.mark.slow)
        for index, value in enumerate(listed)
    ]

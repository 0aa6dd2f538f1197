"""Long lists of parameters: the default tests run some of them, the slow tests the others, of which
CI runs two fifths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

_LEFT_OUT = (pytest.mark.slow, pytest.mark.long_table)


def thinned(values: Iterable[Any], keep: int) -> list[Any]:
    """All values as parameters. All but `keep`, evenly spread, are slow and a long table."""
    listed = list(values)
    kept = {round(index * (len(listed) - 1) / max(keep - 1, 1)) for index in range(keep)}
    return [
        value if index in kept else pytest.param(value, marks=_LEFT_OUT)
        for index, value in enumerate(listed)
    ]

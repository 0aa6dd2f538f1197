"""The kinds of values that scorers give: a scorer inherits its range and its direction from one of these."""

from __future__ import annotations

import math
from typing import ClassVar


class Share:
    """From 0 to 1, and more is better: a share, or 1 for a check that holds and 0 for one that does not."""

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False


class Rate(Share):
    """From 0 to 1, and less is better."""

    higher_is_better: ClassVar[bool] = False


class Amount:
    """From 0 on, and less is better: seconds, tokens, calls."""

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = math.inf
    higher_is_better: ClassVar[bool] = False
    needs_reference: ClassVar[bool] = False

"""One deviation from the reference, without its values."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["missing", "unexpected", "argument", "other"]


class Miss(NamedTuple):
    """A tool call that is missing, unexpected or out of order, or has another argument than
    expected. `other` stands for several misses.
    """

    kind: Kind
    tool: str = ""
    argument: str = ""
    """Empty if it is not known which arguments differ."""

"""What a check cost: an `Asker` tells of its requests, and their numbers, tokens and dollars go
out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pathgauge.scorers.types import Json


@dataclass(slots=True)
class Spent:
    """An `Observer` that sums up."""

    codes: Counter[str] = field(default_factory=Counter)
    """Requests by how they ended."""
    by_kind: Counter[str] = field(default_factory=Counter)
    """Tokens, `input` and `output`."""
    usd: float | None = None
    """`None`: no price is known."""

    def request(self, model: str, code: str, seconds: float) -> None:
        """One request ended."""
        self.codes[code] += 1

    def tokens(self, model: str, kind: str, count: int) -> None:
        """Tokens of one request."""
        self.by_kind[kind] += count

    def cost(self, model: str, usd: float) -> None:
        """Dollars of one request."""
        self.usd = (self.usd or 0.0) + usd

    def cached(self, model: str, how: str) -> None:
        """Nothing: only requests cost anything."""

    def told(self) -> dict[str, Json]:
        """All of it as JSON."""
        tokens = {kind: self.by_kind[kind] for kind in ("input", "output")}
        return {
            "requests": self.codes.total(),
            "codes": dict(self.codes),
            "tokens": tokens,
            "usd": self.usd,
        }

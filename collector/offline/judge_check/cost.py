"""Adds up what a check costs: requests, tokens and dollars."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pathgauge.scorers.types import Json


@dataclass(slots=True)
class CheckCost:
    """An `Observer` of the model client that adds up."""

    codes: Counter[str] = field(default_factory=Counter)
    """Requests by result code."""
    by_kind: Counter[str] = field(default_factory=Counter)
    """Tokens, `input` and `output`."""
    usd: float | None = None
    """`None`: no price is known."""

    def request(self, model: str, code: str, seconds: float) -> None:
        """Count one finished request."""
        self.codes[code] += 1

    def tokens(self, model: str, kind: str, count: int) -> None:
        """Add the tokens of one request."""
        self.by_kind[kind] += count

    def cost(self, model: str, usd: float) -> None:
        """Add the dollars of one request."""
        self.usd = (self.usd or 0.0) + usd

    def cached(self, model: str, how: str) -> None:
        """Ignored: cached answers cost nothing."""

    def to_json(self) -> dict[str, Json]:
        """The totals as JSON."""
        tokens = {kind: self.by_kind[kind] for kind in ("input", "output")}
        return {
            "requests": self.codes.total(),
            "codes": dict(self.codes),
            "tokens": tokens,
            "usd": self.usd,
        }

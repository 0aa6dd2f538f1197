"""Prices of models, and what model calls cost by them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pathgauge.scorers.types import ModelCall

_MILLION = 1_000_000
_WILDCARDS = frozenset("*?[")
_VERSION = re.compile(r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest))(?:-v\d+(?::\d+)?)?$")
"""The end of `gpt-4o-2024-08-06`, `claude-sonnet-4-20250514` and `gemini-2.5-pro-002`."""


@dataclass(frozen=True)
class TokenPrice:
    """US dollars per million tokens of a model."""

    input: float
    output: float
    cached: float | None = None
    """Input that is read from the provider's cache; `null`: as other input."""
    cache_write: float | None = None
    """Input that is written to the provider's cache; `null`: as other input."""

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            if price is not None and not (price >= 0 and math.isfinite(price)):
                raise ValueError(f"{name}: found {price}, expected a number from 0")

    def cost(self, call: ModelCall) -> float:
        """US dollars of a call whose tokens are known.

        `input_tokens` should include the cached ones. If they are fewer, the framework counts
        cached tokens separately.
        """
        given, made = call.input_tokens or 0, call.output_tokens or 0
        cached, written = call.cached_tokens or 0, call.cache_write_tokens or 0
        fresh = given - cached - written
        if fresh < 0:
            fresh = given
        parts = (
            fresh * self.input,
            made * self.output,
            cached * (self.input if self.cached is None else self.cached),
            written * (self.input if self.cache_write is None else self.cache_write),
        )
        return math.fsum(parts) / _MILLION


def price_of(model: str, prices: Mapping[str, TokenPrice]) -> TokenPrice | None:
    """The price of a model, regardless of case: under its name, else under its name without a date
    or version at the end, else under the pattern with the most characters that are no wildcards.
    `None`: there is none.
    """
    name = model.casefold()
    general = _VERSION.sub("", name)
    ranks = {
        pattern: (pattern.casefold() == name, pattern.casefold() == general, _literals(pattern))
        for pattern in prices
        if pattern.casefold() in (name, general) or fnmatchcase(name, pattern.casefold())
    }
    if not ranks:
        return None
    return prices[max(ranks, key=lambda pattern: ranks[pattern])]


def _literals(pattern: str) -> int:
    return sum(character not in _WILDCARDS for character in pattern)

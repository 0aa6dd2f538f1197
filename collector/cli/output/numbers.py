"""Numbers and verdicts as people read them."""

from __future__ import annotations


def number(value: float) -> str:
    """Three decimals; three digits for the cost of an invocation, which may be a hundredth cent."""
    return f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:.3f}"


def verdict_text(verdict: str) -> str:
    """A verdict in words."""
    return verdict.replace("_", " ")

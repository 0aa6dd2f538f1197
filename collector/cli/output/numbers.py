"""Numbers and verdicts as people read them."""

from __future__ import annotations

from datetime import datetime

_MAX_DAYS = 36_500


def number(value: float) -> str:
    """Three decimals; three digits for the cost of an invocation, which may be a hundredth cent."""
    return f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:.3f}"


def days(value: float) -> str:
    """Evidence. Above a hundred years, the number says nothing more."""
    return f">{_MAX_DAYS}" if value > _MAX_DAYS else number(value)


def time_text(time: datetime | None) -> str:
    """To the minute; empty without a time."""
    return "" if time is None else time.strftime("%Y-%m-%d %H:%M UTC")


def verdict_text(verdict: str) -> str:
    """A verdict in words."""
    return verdict.replace("_", " ")

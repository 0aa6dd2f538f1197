"""What asking may cost: estimates come in before a call and what was used after it; no call goes
out that a budget does not cover.

A call is charged with its estimate at once, so that calls under way together cannot overdraw, and
with what the server reports in its place later. Windows are the hours and days of UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client.settings import BudgetLimits, Price

Measure = Literal["calls", "tokens", "usd"]
MEASURES: tuple[Measure, ...] = ("calls", "tokens", "usd")
_SECONDS: Mapping[str, float] = {"hour": 3600.0, "day": 86_400.0}
_PER_MILLION = 1e-6
_ROUNDING = 1e-9
"""Sums of many small amounts may be off by this share."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What calls take."""

    calls: float = 0.0
    tokens: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)


@dataclass(slots=True)
class Charge:
    """What one call is charged with, and where."""

    amounts: Amounts
    price: Price | None
    windows: tuple[tuple[str, int], ...] = field(default=())
    """The windows that it was charged to."""


@dataclass(frozen=True, slots=True)
class _Window:
    number: int
    used: Amounts = Amounts()


class Budget:
    """Belongs to one event loop, save `spent` and what is left, which any thread may ask for.
    `wall` gives Unix seconds.
    """

    def __init__(self, limits: BudgetLimits, wall: Callable[[], float]) -> None:
        self._limits = {
            (name, measure): limit
            for name in _SECONDS
            for measure in MEASURES
            if (limit := getattr(limits, f"{measure}_per_{name}")) is not None
        }
        self._wall = wall
        self._windows = {name: _Window(self._number(name)) for name in _SECONDS}

    def reserve(self, input_tokens: int, output_tokens: int, price: Price | None) -> Charge:
        """Charge one call with its estimate. Raises `JudgeError` (`budget`), and charges nothing,
        when a limit does not leave so much.

        A budget of money needs a price.
        """
        charge = Charge(_amounts(input_tokens, output_tokens, price), price)
        self._turn()
        for (name, measure), limit in self._limits.items():
            if measure == "usd" and price is None:
                raise JudgeError(
                    "budget", "the price of the model is not known, which a budget of money needs"
                )
            wanted = getattr(self._windows[name].used + charge.amounts, measure)
            if wanted > limit and not math.isclose(wanted, limit, rel_tol=_ROUNDING):
                raise JudgeError("budget", f"the {measure} of this {name} are used up")
        charge.windows = tuple((name, window.number) for name, window in self._windows.items())
        self._add(charge, charge.amounts)
        return charge

    def book(self, charge: Charge, input_tokens: int, output_tokens: int) -> float | None:
        """Put what was used in the place of the estimate. US dollars; `None` without a price."""
        used = _amounts(input_tokens, output_tokens, charge.price)
        self._add(charge, used - charge.amounts)
        charge.amounts = used
        return None if charge.price is None else used.usd

    def release(self, charge: Charge) -> None:
        """Take a charge back whose call was not made."""
        self._add(charge, Amounts() - charge.amounts)
        charge.amounts = Amounts()

    def spent(self) -> dict[str, tuple[float, ...]]:
        """For each window its number since 1970, and its calls, tokens and US dollars; what
        `restore` takes.
        """
        windows = {name: self._present(name) for name in _SECONDS}
        return {
            name: (float(window.number), *(getattr(window.used, measure) for measure in MEASURES))
            for name, window in windows.items()
        }

    def restore(self, spent: Mapping[str, tuple[float, ...]]) -> None:
        """Charge what was spent before a restart, as far as its windows are still the present ones."""
        self._turn()
        for name, window in self._windows.items():
            match spent.get(name):
                case (number, calls, tokens, usd) if number == window.number:
                    self._windows[name] = replace(
                        window, used=window.used + Amounts(calls, tokens, usd)
                    )

    def remaining(self) -> Iterator[tuple[Measure, str, float]]:
        """Measure, window and what is left of it, for every limit; never below 0."""
        for (name, measure), limit in self._limits.items():
            yield measure, name, max(0.0, limit - getattr(self._present(name).used, measure))

    def shares_left(self) -> Iterator[tuple[Measure, str, float]]:
        """The same as shares of each limit, from 0 to 1."""
        for measure, name, left in self.remaining():
            yield measure, name, left / limit if (limit := self._limits[name, measure]) else 0.0

    def _turn(self) -> None:
        """Begin new windows whose time has come."""
        for name in _SECONDS:
            self._windows[name] = self._present(name)

    def _present(self, name: str) -> _Window:
        """The window of now. A clock that is put back a little does not open a budget again."""
        window, number = self._windows[name], self._number(name)
        return window if number in (window.number, window.number - 1) else _Window(number)

    def _number(self, name: str) -> int:
        return int(self._wall() // _SECONDS[name])

    def _add(self, charge: Charge, amounts: Amounts) -> None:
        for name, number in charge.windows:
            window = self._windows[name]
            if window.number == number:
                self._windows[name] = replace(window, used=window.used + amounts)


def _amounts(input_tokens: int, output_tokens: int, price: Price | None) -> Amounts:
    usd = (
        0.0
        if price is None
        else (input_tokens * price.input + output_tokens * price.output) * _PER_MILLION
    )
    return Amounts(1.0, float(input_tokens + output_tokens), usd)

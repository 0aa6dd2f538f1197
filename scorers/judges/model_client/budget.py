"""Budgets for calls, tokens and US dollars, per UTC hour and day.

A call is charged with an estimate before it is sent, so concurrent calls cannot overspend. The
usage that the server reports later replaces the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client.settings import BudgetLimits, Price

Measure = Literal["calls", "tokens", "usd"]
MEASURES: tuple[Measure, ...] = ("calls", "tokens", "usd")
Spent = Mapping[str, Sequence[float]]
"""For each window: its number since 1970, calls, tokens and US dollars."""
_WINDOW_S: Mapping[str, float] = {"hour": 3600.0, "day": 86_400.0}
_PER_MILLION = 1e-6
_ROUNDING = 1e-9
"""Relative tolerance: sums of many small amounts have rounding errors."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Usage of one or more calls."""

    calls: float = 0.0
    tokens: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)


@dataclass(slots=True)
class Charge:
    """The charge of one call: first its estimate, later its reported usage."""

    amounts: Amounts
    price: Price | None
    windows: tuple[tuple[str, int], ...] = field(default=())
    """Name and number of each window that was charged."""


@dataclass(frozen=True, slots=True)
class _Window:
    number: int
    """Counted since 1970."""
    used: Amounts = Amounts()


class Budget:
    """Belongs to one event loop; `spent`, `remaining` and `shares_left` work from any thread."""

    def __init__(self, limits: BudgetLimits, wall: Callable[[], float]) -> None:
        """`wall` returns Unix seconds."""
        self._limits = {
            (name, measure): limit
            for name in _WINDOW_S
            for measure in MEASURES
            if (limit := getattr(limits, f"{measure}_per_{name}")) is not None
        }
        self._wall = wall
        self._windows = {name: _Window(self._current_number(name)) for name in _WINDOW_S}

    def reserve(self, input_tokens: int, output_tokens: int, price: Price | None) -> Charge:
        """Charge one call with its estimate.

        Raises `JudgeError` (`budget`) and charges nothing if the estimate exceeds a limit, or if a
        limit in US dollars applies and the price is unknown.
        """
        charge = Charge(_amounts(input_tokens, output_tokens, price), price)
        self._start_due_windows()
        for (name, measure), limit in self._limits.items():
            if measure == "usd" and price is None:
                raise JudgeError(
                    "budget", "the price of the model is unknown, but a budget in USD needs it"
                )
            total = getattr(self._windows[name].used + charge.amounts, measure)
            if total > limit and not math.isclose(total, limit, rel_tol=_ROUNDING):
                raise JudgeError("budget", f"the {measure} of this {name} are used up")
        charge.windows = tuple((name, window.number) for name, window in self._windows.items())
        self._add(charge, charge.amounts)
        return charge

    def book(self, charge: Charge, input_tokens: int, output_tokens: int) -> float | None:
        """Replace the estimate by the reported usage. Returns US dollars if a price is known."""
        used = _amounts(input_tokens, output_tokens, charge.price)
        self._add(charge, used - charge.amounts)
        charge.amounts = used
        return None if charge.price is None else used.usd

    def release(self, charge: Charge) -> None:
        """Cancel the charge of a call that was not sent."""
        self._add(charge, Amounts() - charge.amounts)
        charge.amounts = Amounts()

    def spent(self) -> Spent:
        """What was spent in the present windows. See `restore`."""
        windows = {name: self._current(name) for name in _WINDOW_S}
        return {
            name: (float(window.number), *(getattr(window.used, measure) for measure in MEASURES))
            for name, window in windows.items()
        }

    def restore(self, spent: Spent) -> None:
        """Charge what an earlier process spent, for windows that have not ended since."""
        self._start_due_windows()
        for name, window in self._windows.items():
            match spent.get(name):
                case (number, calls, tokens, usd) if number >= window.number:
                    used = window.used + Amounts(calls, tokens, usd)
                    self._windows[name] = replace(window, used=used)

    def remaining(self) -> Iterator[tuple[Measure, str, float]]:
        """Measure, window and remaining amount of every limit; never below 0."""
        for (name, measure), limit in self._limits.items():
            yield measure, name, max(0.0, limit - getattr(self._current(name).used, measure))

    def shares_left(self) -> Iterator[tuple[Measure, str, float]]:
        """Like `remaining`, as a share of the limit from 0 to 1."""
        for measure, name, left in self.remaining():
            limit = self._limits[name, measure]
            yield measure, name, left / limit if limit else 0.0

    def _start_due_windows(self) -> None:
        for name in _WINDOW_S:
            self._windows[name] = self._current(name)

    def _current(self, name: str) -> _Window:
        """The window of now. A clock that is set back does not reset the budget: what was spent is
        part of the window that the clock shows then. So a clock that was far ahead does not close
        the budget for longer than this window.
        """
        window = self._windows[name]
        number = self._current_number(name)
        if number in (window.number, window.number - 1):
            return window
        return _Window(number) if number > window.number else replace(window, number=number)

    def _current_number(self, name: str) -> int:
        return int(self._wall() // _WINDOW_S[name])

    def _add(self, charge: Charge, amounts: Amounts) -> None:
        for name, number in charge.windows:
            window = self._windows[name]
            if window.number == number:
                self._windows[name] = replace(window, used=window.used + amounts)


def _amounts(input_tokens: int, output_tokens: int, price: Price | None) -> Amounts:
    usd = 0.0
    if price is not None:
        usd = (input_tokens * price.input + output_tokens * price.output) * _PER_MILLION
    return Amounts(1.0, float(input_tokens + output_tokens), usd)

"""A scorer that calls a function, or an evaluator class, written for another evaluation tool."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

from pathgauge.scorers.adapters.inputs import Shape, shaped
from pathgauge.scorers.adapters.known import NotKnownError
from pathgauge.scorers.adapters.results import as_score
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score

SCENARIO = "scenario"
"""Option of checks that take a scenario: entries that override those of the reference."""


@dataclass(frozen=True)
class Check:
    """A function or an evaluator class, and how to call it."""

    names: tuple[str, ...]
    """The name of the scorer, and the name of the function in its code."""
    target: Any
    receives: tuple[tuple[str, Shape], ...]
    """The parameters that receive the invocation, the reference or parts of them."""
    options: tuple[str, ...]

    def bound(self, options: Mapping[str, Any]) -> Callable[..., Any]:
        """The function with these options."""
        if inspect.isclass(self.target):
            evaluator: Any = self.target(**options)
            return cast(Callable[..., Any], evaluator.evaluate)
        return partial(self.target, **options)


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckScorer:
    """A check as a scorer. Each check has its own subclass, whose additional fields are the options
    of the check.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool]
    needs_turn: ClassVar[bool]
    check: ClassVar[Check]

    low: float = 0.0
    """The lowest value that the check can return."""
    high: float = 1.0
    """The highest value that the check can return."""
    higher_is_better: bool = True
    """If true, values from the threshold up pass; else values up to the threshold."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high):
            raise ValueError(
                f"high: found {self.high:g}, expected more than low, which is {self.low:g}"
            )
        if vars(self).get(SCENARIO) is not None:
            object.__setattr__(self, "needs_reference", self.needs_turn)
        try:
            self.check.bound(self._options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the constructor of an evaluator is third-party code
            raise ValueError(f"{type(error).__name__}: {error}") from error

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CheckScorer)
            and self.check == other.check
            and vars(self) == vars(other)
        )

    def __hash__(self) -> int:
        return hash(self.check)  # options may be lists, which have no hash

    @property
    def _options(self) -> dict[str, Any]:
        """Copies, because a function may modify its arguments."""
        return {name: deepcopy(getattr(self, name)) for name in self.check.options}

    @property
    def _scenario_entries(self) -> Mapping[str, Any]:
        return deepcopy(vars(self).get(SCENARIO)) or {}

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Call the check. Exceptions of the check are not caught. Raises `TypeError` if it returns
        something that is not a score.
        """
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        received = {
            name: shaped(shape, actual, expected, self._scenario_entries)
            for name, shape in self.check.receives
        }
        try:
            returned = self.check.bound(self._options)(**received)
        except NotKnownError as unknown:
            return Score.not_evaluated(unknown.reason, f"{unknown.key} is not known")
        return as_score(returned, self.check.names)

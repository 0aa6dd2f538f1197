"""Decides which expected calls the arguments of an actual call satisfy, by a rule per tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.equality import (
    Arguments,
    Items,
    canonical_object,
    opened,
    tool_name,
)
from pathgauge.scorers.matching.matchers import AtLeast, Ignored, cost, holds_matcher, matches
from pathgauge.scorers.types import Json

ArgumentMode = Literal["exact", "ignore", "subset", "superset"]
"""Which arguments satisfy the expected ones: equal ones (`exact`), any (`ignore`), some of them and
no others (`subset`), all of them and possibly others (`superset`).
"""

Rule: TypeAlias = ArgumentMode | tuple[str, ...]
"""A mode, or the only keys to compare, also nested ones such as `room.beds`. Their values must be
equal, or absent on both sides.
"""

Recorded: TypeAlias = Mapping[str, Json] | str | None
"""Arguments as in `ToolCall`."""

MAX_COST = 150_000
"""Cost of all comparisons with matchers in an invocation, in the unit of `matchers.cost`. This much
takes some tenths of a second.
"""


class Rules(NamedTuple):
    """How the arguments of calls are compared, tool by tool."""

    rule: Rule
    overrides: tuple[tuple[str, Rule], ...] = ()
    """Rules of single tools."""

    def of(self, tool: str) -> Rule:
        """The rule for a tool, by the name that is compared."""
        return next((rule for name, rule in self.overrides if tool_name(name) == tool), self.rule)


class ToolRequirements:
    """What the expected calls of one tool require of arguments. Sets of calls are bits, as in
    `pathgauge.scorers.matching.alignment`.
    """

    def __init__(self, rule: Rule) -> None:
        self.cost = 0
        """Cost of comparing one call with all arguments that have matchers, in the unit of
        `matchers.cost`.
        """
        self._rule = rule
        self._literal: dict[Items, int] = {}
        self._matchers: dict[Items, tuple[Mapping[str, Json], int]] = {}

    def add(self, arguments: Mapping[str, Json] | None, call: int) -> bool:
        """Add the arguments of an expected call. Returns whether it requires any."""
        required = required_arguments(self._rule, arguments)
        if required is None:
            return False
        key = canonical_object(required)
        if not holds_matcher(required):
            self._literal[key] = self._literal.get(key, 0) | call
            return True
        if key not in self._matchers:
            self.cost += cost(required)
        self._matchers[key] = required, self._matchers.get(key, (required, 0))[1] | call
        return True

    def satisfied(self, arguments: Recorded, key: Arguments) -> int:
        """The expected calls that recorded arguments satisfy; `key` is their canonical form. Raises
        the exceptions of `matchers.matches`.
        """
        if not isinstance(key, frozenset):
            return 0
        if not self._matchers and not isinstance(self._rule, tuple):
            return self._literal_calls(key)
        return self._satisfied(opened(arguments), key)

    def _satisfied(self, given: Json, key: Items) -> int:
        if isinstance(self._rule, tuple):
            given = picked(given, self._rule)
            key = canonical_object(given)
        matching = (
            calls
            for required, calls in self._matchers.values()
            if _fits(self._rule, required, given)
        )
        return sum(matching, self._literal_calls(key))

    def _literal_calls(self, key: Items) -> int:
        if self._rule == "superset":
            return sum(calls for required, calls in self._literal.items() if required <= key)
        if self._rule == "subset":
            return sum(calls for required, calls in self._literal.items() if key <= required)
        return self._literal.get(key, 0)


class SatisfiedCalls:
    """The expected calls that calls of one invocation satisfy, computed once for equal calls."""

    def __init__(self, by_tool: Mapping[str, ToolRequirements]) -> None:
        self._by_tool = by_tool
        self._known: dict[tuple[str, Arguments], int] = {}
        self._cost = 0

    def of(self, tool: str, arguments: Recorded, key: Arguments) -> int:
        """As `ToolRequirements.satisfied`. Raises `TooLongError` beyond `MAX_COST`."""
        requirements = self._by_tool[tool]
        if not requirements.cost:
            return requirements.satisfied(arguments, key)
        calls = self._known.get((tool, key))
        if calls is None:
            self._cost += requirements.cost
            if self._cost > MAX_COST:
                raise TooLongError("too many comparisons of arguments with matchers")
            calls = self._known[tool, key] = requirements.satisfied(arguments, key)
        return calls


def required_arguments(
    rule: Rule, arguments: Mapping[str, Json] | None
) -> Mapping[str, Json] | None:
    """The expected arguments that a rule compares; `None` if any arguments are accepted."""
    if arguments is None or rule in {"ignore", ()}:
        return None
    if isinstance(rule, tuple):
        return picked(arguments, rule)
    if rule != "superset":
        return arguments
    compared = {key: value for key, value in arguments.items() if not isinstance(value, Ignored)}
    return compared or None


def picked(arguments: Mapping[str, Json], paths: tuple[str, ...]) -> Mapping[str, Json]:
    """The values at these paths, without the paths that do not exist."""
    found = ((path, _at(arguments, path.split("."))) for path in paths)
    return {path: values[0] for path, values in found if values}


def _at(value: Json, keys: list[str]) -> tuple[Json, ...]:
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return ()
        value = value[key]
    return (value,)


def _fits(rule: Rule, required: Mapping[str, Json], given: Json) -> bool:
    if rule == "superset":
        return matches(AtLeast(required), given)
    if rule == "subset":
        return all(
            key in required and matches(required[key], value) for key, value in given.items()
        )
    return matches(required, given)

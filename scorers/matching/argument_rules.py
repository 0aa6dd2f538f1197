"""What a reference asks of arguments: a rule and the arguments of expected calls come in, which of
them given arguments answer goes out.
"""

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
"""How arguments must be: equal; any; some of the expected ones and no others; at least the expected
ones.
"""

Rule: TypeAlias = ArgumentMode | tuple[str, ...]
"""A mode, or the keys, also of objects inside as in `room.beds`, that alone are compared: equal, or
absent on both sides.
"""

Recorded: TypeAlias = Mapping[str, Json] | str | None
"""Arguments as `ToolCall` has them."""

MAX_COST = 150_000
"""Of the comparisons of an invocation with matchers, in the unit of `matchers.cost`: some tenths of
a second.
"""


class Rules(NamedTuple):
    """How the arguments of calls are compared, tool by tool."""

    rule: Rule
    overrides: tuple[tuple[str, Rule], ...] = ()
    """Rules of single tools."""

    def of(self, tool: str) -> Rule:
        """The rule for a tool, by the name that is compared."""
        return next((rule for name, rule in self.overrides if tool_name(name) == tool), self.rule)


class Demands:
    """What the expected calls of one tool ask of arguments by a rule. Calls are bits, as in
    `pathgauge.scorers.matching.alignment`.
    """

    def __init__(self, rule: Rule) -> None:
        self.cost = 0
        """What comparing one call with all arguments that have matchers takes, in the unit of
        `matchers.cost`.
        """
        self._rule = rule
        self._literal: dict[Items, int] = {}
        self._matchers: dict[Items, tuple[Mapping[str, Json], int]] = {}

    def add(self, arguments: Mapping[str, Json] | None, call: int) -> bool:
        """Note what an expected call asks for; whether it asks for anything."""
        asked = demanded(self._rule, arguments)
        if asked is None:
            return False
        key = canonical_object(asked)
        if holds_matcher(asked):
            self.cost += cost(asked) if key not in self._matchers else 0
            self._matchers[key] = asked, self._matchers.get(key, (asked, 0))[1] | call
        else:
            self._literal[key] = self._literal.get(key, 0) | call
        return True

    def answered(self, arguments: Recorded, key: Arguments) -> int:
        """The calls that recorded arguments answer; `key` is their canonical form. Raises what
        `matchers.matches` raises.
        """
        if not isinstance(key, frozenset):
            return 0
        if not self._matchers and not isinstance(self._rule, tuple):
            return self._literal_calls(key)
        return self._answered(opened(arguments), key)

    def _answered(self, given: Json, key: Items) -> int:
        if isinstance(self._rule, tuple):
            given = picked(given, self._rule)
            key = canonical_object(given)
        matching = (
            calls for asked, calls in self._matchers.values() if _fits(self._rule, asked, given)
        )
        return sum(matching, self._literal_calls(key))

    def _literal_calls(self, key: Items) -> int:
        if self._rule == "superset":
            return sum(calls for asked, calls in self._literal.items() if asked <= key)
        if self._rule == "subset":
            return sum(calls for asked, calls in self._literal.items() if key <= asked)
        return self._literal.get(key, 0)


class Answers:
    """What the calls of one invocation answer, found once for calls that are the same."""

    def __init__(self, demands: Mapping[str, Demands]) -> None:
        self._demands = demands
        self._known: dict[tuple[str, Arguments], int] = {}
        self._cost = 0

    def of(self, tool: str, arguments: Recorded, key: Arguments) -> int:
        """As `Demands.answered`. Raises `TooLongError` beyond `MAX_COST`."""
        demands = self._demands[tool]
        if not demands.cost:
            return demands.answered(arguments, key)
        calls = self._known.get((tool, key))
        if calls is None:
            self._cost += demands.cost
            if self._cost > MAX_COST:
                raise TooLongError("too many comparisons of arguments with matchers")
            calls = self._known[tool, key] = demands.answered(arguments, key)
        return calls


def demanded(rule: Rule, arguments: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
    """What expected arguments ask for by a rule; `None` when any will do."""
    if arguments is None or rule in {"ignore", ()}:
        return None
    if isinstance(rule, tuple):
        return picked(arguments, rule)
    if rule == "superset":
        return {
            key: value for key, value in arguments.items() if not isinstance(value, Ignored)
        } or None
    return arguments


def picked(arguments: Mapping[str, Json], paths: tuple[str, ...]) -> Mapping[str, Json]:
    """The values at these paths, those that are there."""
    found = ((path, _at(arguments, path.split("."))) for path in paths)
    return {path: values[0] for path, values in found if values}


def _at(value: Json, keys: list[str]) -> tuple[Json, ...]:
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return ()
        value = value[key]
    return (value,)


def _fits(rule: Rule, asked: Mapping[str, Json], given: Json) -> bool:
    if rule == "superset":
        return matches(AtLeast(asked), given)
    if rule == "subset":
        return all(key in asked and matches(asked[key], value) for key, value in given.items())
    return matches(asked, given)

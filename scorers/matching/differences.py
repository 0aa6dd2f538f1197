"""Lists the arguments that differ between unmatched actual and expected calls of the same tool, and
the calls of which this is not known.

This is for explanations only and has no influence on scores. Unmatched calls with the expected
arguments were made at another place. The other ones of a tool are compared in their order.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from pathgauge.scorers.matching.alignment import Alignment, TooLongError
from pathgauge.scorers.matching.argument_rules import Rule, Rules, picked, required_arguments
from pathgauge.scorers.matching.bipartite import largest_matching
from pathgauge.scorers.matching.comparison import Comparison
from pathgauge.scorers.matching.equality import opened
from pathgauge.scorers.matching.matchers import Ignored, Matcher, matches, written
from pathgauge.scorers.matching.wording import cut, cut_apart
from pathgauge.scorers.types import Json, ToolCall

MAX_DIFFERENCES = 20
"""Pairs of calls in the details that have arguments, and arguments of each pair."""
_MAX_VALUE = 200
"""Characters of a value in the details."""


class Difference(NamedTuple):
    """A call that would have been the expected one with other arguments."""

    actual: int
    expected: int
    tool: str
    arguments: Mapping[str, list[str | None]]
    """[expected, actual] by argument, as JSON text that may be cut; `None` if absent. Empty if it
    is not told which ones differ: the actual ones are no object, or calls before have many.
    """


class Unrecorded(NamedTuple):
    """A call that may have been the expected one, but its arguments were not recorded."""

    actual: int
    expected: int
    tool: str


def moved(comparison: Comparison, rules: Rules, alignment: Alignment) -> Mapping[int, int]:
    """Unexpected calls with missing ones that they match, at another place."""
    if not alignment.missing or not alignment.unexpected:
        return {}
    missing = sum(1 << j for j in alignment.missing)
    matching = comparison.matching(rules)
    try:
        return largest_matching({i: matching[i] & missing for i in alignment.unexpected})
    except TooLongError:
        return {}


def differences(comparison: Comparison, rules: Rules, alignment: Alignment) -> list[Difference]:
    """The differences among missing and unexpected calls, in the order of the actual calls."""
    calls = comparison.actual.calls
    pairs = [(i, j) for i, j in _pairs(comparison, rules, alignment) if _is_recorded(calls[i])]
    return [
        difference(comparison, rules, i, j, MAX_DIFFERENCES if number < MAX_DIFFERENCES else 0)
        for number, (i, j) in enumerate(pairs)
    ]


def difference(
    comparison: Comparison,
    rules: Rules,
    actual: int,
    expected: int,
    max_arguments: int = MAX_DIFFERENCES,
) -> Difference:
    """The difference of an actual call from an expected one of the same tool."""
    tool = comparison.expected.names[expected]
    arguments: dict[str, list[str | None]] = {}
    if max_arguments:
        differing = _differing(
            rules.of(tool),
            comparison.expected.calls[expected].arguments,
            opened(comparison.actual.calls[actual].arguments),
        )
        arguments = {
            key: _cut(_json(required), _json(given))
            for key, required, given in islice(differing, max_arguments)
        }
    return Difference(actual, expected, tool, arguments)


def unrecorded(comparison: Comparison, rules: Rules, alignment: Alignment) -> list[Unrecorded]:
    """The calls without recorded arguments among missing and unexpected ones, if the rules compare
    these arguments.
    """
    calls = comparison.actual.calls
    if all(map(_is_recorded, calls)):
        return []
    return [
        Unrecorded(i, j, comparison.expected.names[j])
        for i, j in _pairs(comparison, rules, alignment)
        if not _is_recorded(calls[i])
    ]


def _is_recorded(call: ToolCall) -> bool:
    return call.arguments is not None


def _pairs(comparison: Comparison, rules: Rules, alignment: Alignment) -> Iterator[tuple[int, int]]:
    """Unexpected calls with missing ones of the same tool that they do not match, in order."""
    elsewhere = moved(comparison, rules, alignment)
    taken = set(elsewhere.values())
    missing: dict[str, deque[int]] = defaultdict(deque)
    for j in alignment.missing:
        if j not in taken:
            missing[comparison.expected.names[j]].append(j)
    for i in alignment.unexpected:
        left = missing[comparison.actual.names[i]]
        if left and i not in elsewhere:
            yield i, left.popleft()


def _differing(
    rule: Rule, arguments: Mapping[str, Json] | None, given: Json
) -> Iterator[tuple[str, list[Json], list[Json]]]:
    """Each differing key with its expected and its actual value, as a list of one value or none."""
    required = required_arguments(rule, arguments)
    if required is None or not isinstance(given, Mapping):
        return
    if isinstance(rule, tuple):
        given = picked(given, rule)
    for key in _keys(rule, required, given):
        one, other = ([side[key]] if key in side else [] for side in (required, given))
        if not _same(one, other):
            yield key, one, other


def _keys(rule: Rule, required: Mapping[str, Json], given: Mapping[str, Json]) -> Iterable[str]:
    if rule == "superset":
        return required
    return given if rule == "subset" else {**required, **given}


def _same(required: list[Json], given: list[Json]) -> bool:
    try:
        return matches(required, given) or (not given and isinstance(required[0], Ignored))
    except (TooLongError, RecursionError):
        return False


def _json(value: list[Json]) -> str | None:
    if not value:
        return None
    try:
        text = _encode(value[0])
    except (TypeError, ValueError, RecursionError):
        return f"a value of the type {type(value[0]).__name__}"
    return text


def _cut(required: str | None, given: str | None) -> list[str | None]:
    if required is None or given is None:
        return [None if text is None else cut(text, _MAX_VALUE) for text in (required, given)]
    return list(cut_apart(required, given, _MAX_VALUE))


def _default(value: Json) -> Json:
    return written(value) if isinstance(value, Matcher) else repr(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=_default).encode

"""Lists the arguments that differ between unmatched actual and expected calls of the same tool, and
the calls of which this is not known.

This is for explanations only and has no influence on scores. Unmatched calls of a tool are compared
in their order.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from pathgauge.scorers.matching.alignment import Alignment, TooLongError
from pathgauge.scorers.matching.argument_rules import Rule, Rules, picked, required_arguments
from pathgauge.scorers.matching.comparison import Comparison
from pathgauge.scorers.matching.equality import opened
from pathgauge.scorers.matching.matchers import Ignored, Matcher, matches, written
from pathgauge.scorers.matching.wording import cut, cut_apart
from pathgauge.scorers.types import Json

MAX_DIFFERENCES = 20
"""Pairs of calls in the details, and arguments of each pair."""
_MAX_VALUE = 200
"""Characters of a value in the details."""


class Difference(NamedTuple):
    """A call that would have been the expected one with other arguments."""

    actual: int
    expected: int
    tool: str
    arguments: Mapping[str, list[str | None]]
    """[expected, actual] by argument, as JSON text that may be cut; `None` if absent."""


class Unrecorded(NamedTuple):
    """A call that may have been the expected one, but its arguments were not recorded."""

    actual: int
    expected: int
    tool: str


def differences(comparison: Comparison, rules: Rules, alignment: Alignment) -> list[Difference]:
    """The differences among missing and unexpected calls, in the order of the actual calls."""
    if not alignment.missing or not alignment.unexpected:
        return []
    return list(islice(_differences(comparison, rules, alignment), MAX_DIFFERENCES))


def unrecorded(comparison: Comparison, rules: Rules, alignment: Alignment) -> list[Unrecorded]:
    """The calls without recorded arguments among missing and unexpected ones, if the rules compare
    these arguments.
    """
    if not alignment.missing or all(call.arguments is not None for call in comparison.actual.calls):
        return []
    expected = comparison.expected.calls
    return [
        Unrecorded(i, j, tool)
        for i, j, tool in _pairs(comparison, alignment)
        if comparison.actual.calls[i].arguments is None
        and required_arguments(rules.of(tool), expected[j].arguments) is not None
    ]


def _pairs(comparison: Comparison, alignment: Alignment) -> Iterator[tuple[int, int, str]]:
    """Unexpected calls with missing ones of the same tool, in their order."""
    missing: dict[str, deque[int]] = defaultdict(deque)
    for j in alignment.missing:
        missing[comparison.expected.names[j]].append(j)
    for i in alignment.unexpected:
        tool = comparison.actual.names[i]
        if missing[tool]:
            yield i, missing[tool].popleft(), tool


def _differences(
    comparison: Comparison, rules: Rules, alignment: Alignment
) -> Iterator[Difference]:
    actual, expected = comparison.actual, comparison.expected
    for i, j, tool in _pairs(comparison, alignment):
        differing = _differing(
            rules.of(tool), expected.calls[j].arguments, opened(actual.calls[i].arguments)
        )
        arguments = {
            key: _cut(_json(required), _json(given))
            for key, required, given in islice(differing, MAX_DIFFERENCES)
        }
        if arguments:
            yield Difference(i, j, tool, arguments)


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

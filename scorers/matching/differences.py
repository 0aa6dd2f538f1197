"""What is wrong with arguments: calls without a partner come in, those of the same tool with the
arguments that differ go out.

This is for people and decides nothing: such calls are put side by side in their order.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from pathgauge.scorers.matching.alignment import Alignment, TooLongError
from pathgauge.scorers.matching.argument_rules import Rule, Rules, demanded, picked
from pathgauge.scorers.matching.comparison import Comparison
from pathgauge.scorers.matching.equality import opened
from pathgauge.scorers.matching.matchers import Ignored, Matcher, matches, written
from pathgauge.scorers.types import Json

MAX_DIFFERENCES = 20
"""Pairs of calls whose arguments are shown, and arguments of such a pair."""
_SHOWN = 200
"""Characters of a value that are shown."""


class Difference(NamedTuple):
    """A call that would have been the expected one with other arguments."""

    actual: int
    expected: int
    tool: str
    arguments: Mapping[str, list[str | None]]
    """What differs, as expected and as found, in JSON that may be cut; `None` is not there."""


def differences(comparison: Comparison, rules: Rules, alignment: Alignment) -> list[Difference]:
    """The differences among missing and unexpected calls, in the order of the actual calls."""
    if not alignment.missing or not alignment.unexpected:
        return []
    return list(islice(_differences(comparison, rules, alignment), MAX_DIFFERENCES))


def _differences(
    comparison: Comparison, rules: Rules, alignment: Alignment
) -> Iterator[Difference]:
    actual, expected = comparison.actual, comparison.expected
    missing: dict[str, deque[int]] = defaultdict(deque)
    for j in alignment.missing:
        missing[expected.names[j]].append(j)
    for i in alignment.unexpected:
        tool = actual.names[i]
        if missing[tool]:
            j = missing[tool].popleft()
            differing = _differing(
                rules.of(tool), expected.calls[j].arguments, opened(actual.calls[i].arguments)
            )
            if shown := {
                key: [_shown(asked), _shown(given)]
                for key, asked, given in islice(differing, MAX_DIFFERENCES)
            }:
                yield Difference(i, j, tool, shown)


def _differing(
    rule: Rule, arguments: Mapping[str, Json] | None, given: Json
) -> Iterator[tuple[str, list[Json], list[Json]]]:
    """Each key with what was asked for and what was given, as a list of one value or none."""
    asked = demanded(rule, arguments)
    if asked is None or not isinstance(given, Mapping):
        return
    if isinstance(rule, tuple):
        given = picked(given, rule)
    for key in _keys(rule, asked, given):
        one, other = ([side[key]] if key in side else [] for side in (asked, given))
        if not _same(one, other):
            yield key, one, other


def _keys(rule: Rule, asked: Mapping[str, Json], given: Mapping[str, Json]) -> Iterable[str]:
    if rule == "superset":
        return asked
    return given if rule == "subset" else {**asked, **given}


def _same(asked: list[Json], given: list[Json]) -> bool:
    try:
        return matches(asked, given) or (not given and isinstance(asked[0], Ignored))
    except (TooLongError, RecursionError):
        return False


def _shown(value: list[Json]) -> str | None:
    if not value:
        return None
    try:
        text = _encode(value[0])
    except (TypeError, ValueError, RecursionError):
        return f"a value of the type {type(value[0]).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _written(value: Json) -> Json:
    return written(value) if isinstance(value, Matcher) else repr(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=_written).encode

"""Explains the score of a trajectory, in one line for people and in JSON details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pathgauge.scorers.matching.alignment import Alignment
from pathgauge.scorers.matching.argument_rules import Rules
from pathgauge.scorers.matching.comparison import Comparison
from pathgauge.scorers.matching.differences import (
    Difference,
    Unrecorded,
    differences,
    moved,
    unrecorded,
)
from pathgauge.scorers.matching.wording import cut, cut_apart, one_line, told_apart
from pathgauge.scorers.types import Json

MAX_NAMES = 5
"""Tools listed in an explanation; the details list all."""
MAX_ARGUMENTS = 3
"""Calls whose arguments an explanation shows, and arguments of a call."""
_MAX_VALUE = 40
"""Characters of a value in an explanation."""


def evidence(
    comparison: Comparison, rules: Rules, alignment: Alignment
) -> tuple[str, dict[str, Json]]:
    """An explanation, such as `2 of 3 expected calls matched; missing send_email; unexpected
    search_web x2`, and the details:

    - `matched`: [actual index, expected index, name],
    - `missing` and `unexpected`: [index, name],
    - `counts`,
    - `different`, if only arguments differ: [actual index, expected index, name, {argument:
      [expected, actual]}], without arguments if it is not told which ones differ,
    - `moved`, if expected calls were made at another place: [actual index, expected index, name],
    - `not_recorded`, if arguments that are compared were not recorded: the same.
    """
    actual, expected = comparison.actual.names, comparison.expected.names
    counts, missing, unexpected = alignment.counts, alignment.missing, alignment.unexpected
    details: dict[str, Json] = {
        "matched": [[i, j, expected[j]] for i, j in alignment.pairs],
        "missing": [[j, expected[j]] for j in missing],
        "unexpected": [[i, actual[i]] for i in unexpected],
        "counts": {"matched": counts.matched, "actual": counts.actual, "expected": counts.expected},
    }
    explanation = "no calls expected"
    if counts.expected:
        explanation = f"{counts.matched} of {counts.expected} expected calls matched"
    different = differences(comparison, rules, alignment)
    unknown = unrecorded(comparison, rules, alignment)
    elsewhere = moved(comparison, rules, alignment)
    details |= _non_empty(
        different=different,
        moved=[(i, j, expected[j]) for i, j in sorted(elsewhere.items())],
        not_recorded=unknown,
    )
    explanation += _explained(different)
    if unknown:
        explanation += f"; arguments of {listed([call.tool for call in unknown])} not recorded"
    paired: list[Difference | Unrecorded] = [*different, *unknown]
    missing = _without(missing, {call.expected for call in paired})
    unexpected = _without(unexpected, {call.actual for call in paired})
    if missing:
        explanation += f"; missing {listed([expected[j] for j in missing])}"
    if unexpected:
        explanation += f"; unexpected {listed([actual[i] for i in unexpected])}"
    return explanation, details


def _non_empty(**lists: Sequence[Sequence[Json]]) -> Mapping[str, Json]:
    return {name: list(map(list, calls)) for name, calls in lists.items() if calls}


def _without(calls: Sequence[int], others: Collection[int]) -> tuple[int, ...]:
    return tuple([call for call in calls if call not in others])


def _explained(different: Sequence[Difference]) -> str:
    parts = [
        one_line(f"; {one.tool} with other arguments{_arguments(one.arguments)}")
        for one in different[:MAX_ARGUMENTS]
    ]
    if len(different) > MAX_ARGUMENTS:
        parts.append(f"; {len(different) - MAX_ARGUMENTS} more with other arguments")
    return "".join(parts)


def _arguments(arguments: Mapping[str, list[str | None]]) -> str:
    """In brackets; nothing if it is not told which ones differ."""
    if not arguments:
        return ""
    parts = [
        f"{cut(key, _MAX_VALUE)}: {expected_and_found(*values)}"
        for key, values in arguments.items()
    ]
    if len(parts) > MAX_ARGUMENTS:
        parts[MAX_ARGUMENTS:] = [f"{len(parts) - MAX_ARGUMENTS} more"]
    return f" ({'; '.join(parts)})"


def expected_and_found(expected: str | None, found: str | None) -> str:
    """Two different values of an argument in words; `None`: it is absent."""
    one, other = expected or "nothing", found or "nothing"
    one, other = told_apart(*cut_apart(one, other, _MAX_VALUE))
    return f"expected {one}, found {other}"


def listed(names: Sequence[str]) -> str:
    """Names with their numbers of occurrences, on one line."""
    parts = [f"{name} x{count}" if count > 1 else name for name, count in Counter(names).items()]
    if len(parts) > MAX_NAMES:
        parts[MAX_NAMES:] = [f"{len(parts) - MAX_NAMES} more"]
    return one_line(", ".join(parts))

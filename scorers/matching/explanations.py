"""Why a trajectory got its score: a comparison and its alignment come in, JSON details and one line
for a person go out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pathgauge.scorers.matching.alignment import Alignment
from pathgauge.scorers.matching.argument_rules import Rules
from pathgauge.scorers.matching.comparison import Comparison
from pathgauge.scorers.matching.differences import Difference, differences
from pathgauge.scorers.types import Json

MAX_NAMES = 5
"""Tools listed in an explanation; the details list all."""
MAX_ARGUMENTS = 3
"""Calls whose arguments an explanation shows, and arguments of a call."""
_SHOWN = 40
"""Characters of a value in an explanation."""


def evidence(
    comparison: Comparison, rules: Rules, alignment: Alignment
) -> tuple[str, dict[str, Json]]:
    """An explanation, such as `2 of 3 expected calls matched; missing send_email; unexpected
    search_web x2`, and the details.

    These are `matched` [actual index, expected index, name], `missing` and `unexpected` [index,
    name], `counts`, and where only arguments are wrong, `different` [actual index, expected index,
    name, {argument: [expected, actual]}].
    """
    made, asked, counts = comparison.actual.names, comparison.expected.names, alignment.counts
    details: dict[str, Json] = {
        "matched": [[i, j, asked[j]] for i, j in alignment.pairs],
        "missing": [[j, asked[j]] for j in alignment.missing],
        "unexpected": [[i, made[i]] for i in alignment.unexpected],
        "counts": {"matched": counts.matched, "actual": counts.actual, "expected": counts.expected},
    }
    line = (
        f"{counts.matched} of {counts.expected} expected calls matched"
        if counts.expected
        else "no calls expected"
    )
    missing, unexpected = alignment.missing, alignment.unexpected
    if different := differences(comparison, rules, alignment):
        details["different"] = list(map(list, different))
        line += _told(different)
        missing = _without(missing, {one.expected for one in different})
        unexpected = _without(unexpected, {one.actual for one in different})
    if missing:
        line += f"; missing {listed([asked[j] for j in missing])}"
    if unexpected:
        line += f"; unexpected {listed([made[i] for i in unexpected])}"
    return line, details


def _without(calls: Sequence[int], told: Collection[int]) -> tuple[int, ...]:
    return tuple([call for call in calls if call not in told])


def _told(different: Sequence[Difference]) -> str:
    told = [
        _line(f"; {one.tool} with other arguments ({_arguments(one.arguments)})")
        for one in different[:MAX_ARGUMENTS]
    ]
    more = len(different) - MAX_ARGUMENTS
    return "".join(told) + (f"; {more} more with other arguments" if more > 0 else "")


def _arguments(arguments: Mapping[str, list[str | None]]) -> str:
    shown = [
        f"{_cut(key)}: expected {_cut(asked)}, found {_cut(given)}"
        for key, (asked, given) in arguments.items()
    ]
    more = [f"{len(shown) - MAX_ARGUMENTS} more"] if len(shown) > MAX_ARGUMENTS else []
    return "; ".join(shown[:MAX_ARGUMENTS] + more)


def _cut(text: str | None) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def listed(names: Sequence[str]) -> str:
    """Names with their number of occurrences, on one line."""
    counts = Counter(names)
    shown = [
        f"{name} x{count}" if count > 1 else name
        for name, count in list(counts.items())[:MAX_NAMES]
    ]
    more = [f"{len(counts) - MAX_NAMES} more"] if len(counts) > MAX_NAMES else []
    return _line(", ".join(shown + more))


def _line(text: str) -> str:
    return " ".join(text.split())

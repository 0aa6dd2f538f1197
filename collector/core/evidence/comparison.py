"""The expected and the actual trajectory side by side, from the details of a trajectory score.

Rows are in the order of the actual calls. A missing call stands next to its neighbours in the
reference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from pathgauge.collector.core.evidence.evidence import Evidence
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.types import ExpectedCall, Json, ReferenceTurn, ToolCall

Mark = Literal["=", "~", "?", "-", "+"]
"""Matched, called with other arguments, arguments not recorded, missing, unexpected."""


class Call(NamedTuple):
    """One call of a trajectory."""

    name: str
    arguments: Mapping[str, Json] | str | None
    """`None`: any, or not known."""


class AlignedCall(NamedTuple):
    """An expected call and the actual call that stands for it; `None` where there is none."""

    mark: Mark
    expected: Call | None
    actual: Call | None
    differing: tuple[str, ...] = ()
    """The names of the arguments that make the difference, as far as they are known."""


class Row(NamedTuple):
    """One line of the comparison, as text."""

    mark: Mark
    expected: str = ""
    actual: str = ""


def rows(
    details: Mapping[str, Json], actual: Sequence[ToolCall], expected: Sequence[ExpectedCall]
) -> list[Row]:
    """The rows for the details that `pathgauge.scorers.matching.explanations` writes. Arguments are
    shown for calls that have the name in the details.
    """
    return list(map(_row, _aligned(details, actual, expected)))


def comparisons(evidence: Evidence) -> list[tuple[Sequence[str], Sequence[Row]]]:
    """The different comparisons of an invocation with its reference, each with the names of the
    criteria that made it.
    """
    return [(names, list(map(_row, aligned))) for names, aligned in alignments(evidence)]


def alignments(evidence: Evidence) -> list[tuple[Sequence[str], Sequence[AlignedCall]]]:
    """The same as calls with their arguments."""
    found: dict[tuple[Row, ...], tuple[list[str], Sequence[AlignedCall]]] = {}
    for criterion in evidence.criteria:
        details = criterion.details or {}
        if "matched" not in details:
            continue
        try:
            expected = _expected(evidence.turn, details)
            aligned = list(_aligned(details, evidence.invocation.tool_calls, expected))
        except (LookupError, TypeError, ValueError):  # a plug-in means something else by `matched`
            continue
        names, _ = found.setdefault(tuple(map(_row, aligned)), ([], aligned))
        names.append(criterion.name)
    return [one for one in found.values() if one[1]]


def _expected(turn: ReferenceTurn | None, details: Mapping[str, Json]) -> Sequence[ExpectedCall]:
    if turn is None:
        return ()
    trajectories = (turn.tool_calls or (), *turn.alternatives)
    return trajectories[details.get("alternative", 0)]


def _aligned(
    details: Mapping[str, Json], actual: Sequence[ToolCall], expected: Sequence[ExpectedCall]
) -> Iterator[AlignedCall]:
    matched, different = details["matched"], details.get("different", ())
    unknown = details.get("not_recorded", ())
    made = {i: _call(name, actual, i) for i, _, name in matched}
    made |= {i: _call(name, actual, i) for i, name in details["unexpected"]}
    wanted = {j: _call(name, expected, j) for _, j, name in matched}
    wanted |= {j: _call(name, expected, j) for j, name in details["missing"]}
    partner = {i: j for i, j, *_ in (*matched, *different, *unknown)}
    differs = {i: tuple(names[0] if names else ()) for i, _, _, *names in different}
    marks: dict[int, Mark] = {i: "?" for i, *_ in unknown} | dict.fromkeys(differs, "~")
    missing = sorted(set(wanted) - set(partner.values()))
    for i in sorted(made):
        j = partner.get(i)
        if j is None:
            yield AlignedCall("+", None, made[i])
            continue
        while missing and missing[0] < j:
            yield AlignedCall("-", wanted[missing.pop(0)], None)
        yield AlignedCall(marks.get(i, "="), wanted[j], made[i], differs.get(i, ()))
    for j in missing:
        yield AlignedCall("-", wanted[j], None)


def _call(name: str, calls: Sequence[ToolCall] | Sequence[ExpectedCall], index: int) -> Call:
    if index >= len(calls) or tool_name(calls[index].name) != name:
        return Call(name, None)
    return Call(name, calls[index].arguments)


def _row(aligned: AlignedCall) -> Row:
    return Row(aligned.mark, _text(aligned.expected), _text(aligned.actual))


def _text(call: Call | None) -> str:
    if call is None:
        return ""
    if call.arguments is None:
        return call.name
    if isinstance(call.arguments, str):
        return f"{call.name}({call.arguments})"
    listed = (f"{key}={value_text(value)}" for key, value in call.arguments.items())
    return f"{call.name}({', '.join(listed)})"


def value_text(value: Json) -> str:
    """A value of an argument as JSON. In evidence, matchers have the form of reference files."""
    return json.dumps(value, ensure_ascii=False, default=str)

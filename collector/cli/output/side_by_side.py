"""Two trajectories beside each other: the evidence of a trajectory score and the calls come in,
rows for a person go out.

A row has what was expected on the left and what was done on the right, in the order of what was
done. Where something expected is missing, it stands where its neighbours in the reference stand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.matchers import written
from pathgauge.scorers.types import ExpectedCall, Json, ToolCall

Mark = Literal["=", "~", "-", "+"]
"""Matched, called with other arguments, missing, unexpected."""


class Row(NamedTuple):
    """One line of the comparison."""

    mark: Mark
    expected: str = ""
    actual: str = ""


def rows(
    details: Mapping[str, Json], actual: Sequence[ToolCall], expected: Sequence[ExpectedCall]
) -> list[Row]:
    """The rows of one alignment, as `pathgauge.scorers.matching.explanations` words it; arguments
    are shown where the calls are those it is about.
    """
    matched, missing, unexpected = details["matched"], details["missing"], details["unexpected"]
    done = {
        i: _call(name, actual, i)
        for i, name in [*((i, name) for i, _, name in matched), *unexpected]
    }
    asked = {
        j: _call(name, expected, j)
        for j, name in [*((j, name) for _, j, name in matched), *missing]
    }
    partner = {i: j for i, j, *_ in (*matched, *details.get("different", ()))}
    differs = {i for i, *_ in details.get("different", ())}
    alone = sorted(set(asked) - set(partner.values()))
    found: list[Row] = []
    for i in sorted(done):
        j = partner.get(i)
        while alone and j is not None and alone[0] < j:
            found.append(Row("-", asked[alone.pop(0)]))
        found.append(
            Row("+", "", done[i])
            if j is None
            else Row("~" if i in differs else "=", asked[j], done[i])
        )
    return [*found, *(Row("-", asked[j]) for j in alone)]


def _call(name: str, calls: Sequence[ToolCall] | Sequence[ExpectedCall], index: int) -> str:
    if index >= len(calls) or tool_name(calls[index].name) != name:
        return name
    arguments = calls[index].arguments
    if arguments is None:
        return name
    if isinstance(arguments, str):
        return f"{name}({arguments})"
    return f"{name}({', '.join(f'{key}={_text(value)}' for key, value in arguments.items())})"


def _text(value: Json) -> str:
    return json.dumps(written(value), ensure_ascii=False, default=str)

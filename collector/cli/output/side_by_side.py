"""The expected and the actual trajectory side by side, from the details of a trajectory score.

Rows are in the order of the actual calls. A missing call stands next to its neighbours in the
reference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
    """The rows for the details that `pathgauge.scorers.matching.explanations` writes. Arguments are
    shown for calls that have the name in the details.
    """
    return list(_rows(details, actual, expected))


def _rows(
    details: Mapping[str, Json], actual: Sequence[ToolCall], expected: Sequence[ExpectedCall]
) -> Iterator[Row]:
    matched, different = details["matched"], details.get("different", ())
    made = {i: _call(name, actual, i) for i, _, name in matched}
    made |= {i: _call(name, actual, i) for i, name in details["unexpected"]}
    wanted = {j: _call(name, expected, j) for _, j, name in matched}
    wanted |= {j: _call(name, expected, j) for j, name in details["missing"]}
    partner = {i: j for i, j, *_ in (*matched, *different)}
    differs = {i for i, *_ in different}
    missing = sorted(set(wanted) - set(partner.values()))
    for i in sorted(made):
        j = partner.get(i)
        if j is None:
            yield Row("+", "", made[i])
            continue
        while missing and missing[0] < j:
            yield Row("-", wanted[missing.pop(0)])
        yield Row("~" if i in differs else "=", wanted[j], made[i])
    for j in missing:
        yield Row("-", wanted[j])


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

"""An expected trajectory prepared for comparison, with sets of calls as bits of an integer.

References live long, so all of this is computed once and kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from pathgauge.scorers.matching.argument_rules import Rules, ToolRequirements
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.types import ExpectedCall


class Requirements(NamedTuple):
    """What the expected calls require of arguments under some rules."""

    by_tool: Mapping[str, ToolRequirements]
    selective: int
    """The calls whose arguments are compared."""


class PreparedReference:
    """The calls of one trajectory."""

    def __init__(self, calls: Sequence[ExpectedCall]) -> None:
        self.calls = calls
        self.names = [tool_name(call.name) for call in calls]
        """The tools, by the names that are compared."""
        self.named = _named(self.names)
        """The calls of each tool."""
        self.required = sum(1 << j for j, call in enumerate(calls) if not call.optional)
        """The calls that are not optional."""
        self.optional = any(call.optional for call in calls)
        """Whether any call is optional."""
        self.blocks = blocks([call.group for call in calls])
        """The calls in order; a block holds calls that may come in any order."""
        self._requirements: dict[Rules, Requirements] = {}

    def requirements(self, rules: Rules) -> Requirements:
        """What the calls require of arguments under these rules."""
        requirements = self._requirements.get(rules)
        if requirements is None:
            requirements = self._requirements[rules] = self._read(rules)
        return requirements

    def _read(self, rules: Rules) -> Requirements:
        by_tool = {name: ToolRequirements(rules.of(name)) for name in self.named}
        selective = sum(
            1 << j
            for j, call in enumerate(self.calls)
            if by_tool[self.names[j]].add(call.arguments, 1 << j)
        )
        return Requirements(by_tool, selective)


def _named(names: Sequence[str]) -> Mapping[str, int]:
    named: dict[str, int] = defaultdict(int)
    for j, name in enumerate(names):
        named[name] |= 1 << j
    return dict(named)


def blocks(groups: Sequence[int | None]) -> list[int]:
    """Elements in order as bits; neighbours of the same group form one block."""
    keys = [index if group is None else (group,) for index, group in enumerate(groups)]
    return [
        sum(1 << index for index in block)
        for _, block in groupby(range(len(keys)), key=keys.__getitem__)
    ]

"""An expected trajectory made ready to compare: expected calls come in, what pairing them needs
goes out, as bits of `pathgauge.scorers.matching.alignment`.

References live long, so all of this is found once and kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from pathgauge.scorers.matching.argument_rules import Demands, Rules
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.types import ExpectedCall


class Asked(NamedTuple):
    """What the calls ask of arguments by some rules."""

    demands: Mapping[str, Demands]
    """By tool."""
    selective: int
    """The calls that look at arguments."""


class Expectation:
    """The calls of one trajectory."""

    def __init__(self, calls: Sequence[ExpectedCall]) -> None:
        self.calls = calls
        self.names = [tool_name(call.name) for call in calls]
        """The tools, by the names that are compared."""
        self.named = _named(self.names)
        """The calls of each tool."""
        self.required = sum(1 << j for j, call in enumerate(calls) if not call.optional)
        """The calls that may not be left out."""
        self.optional = any(call.optional for call in calls)
        """Whether some may."""
        self.blocks = blocks([call.group for call in calls])
        """The calls in their order, those that may come in any order together."""
        self._asked: dict[Rules, Asked] = {}

    def asked(self, rules: Rules) -> Asked:
        """What the calls ask of arguments."""
        asked = self._asked.get(rules)
        if asked is None:
            asked = self._asked[rules] = self._read(rules)
        return asked

    def _read(self, rules: Rules) -> Asked:
        demands = {name: Demands(rules.of(name)) for name in self.named}
        selective = sum(
            1 << j
            for j, call in enumerate(self.calls)
            if demands[self.names[j]].add(call.arguments, 1 << j)
        )
        return Asked(demands, selective)


def _named(names: Sequence[str]) -> Mapping[str, int]:
    named: dict[str, int] = defaultdict(int)
    for j, name in enumerate(names):
        named[name] |= 1 << j
    return dict(named)


def blocks(groups: Sequence[int | None]) -> list[int]:
    """Elements in their order as bits, neighbours of the same group together."""
    keys = [place if group is None else (group,) for place, group in enumerate(groups)]
    return [
        sum(1 << place for place in block)
        for _, block in groupby(range(len(keys)), key=keys.__getitem__)
    ]

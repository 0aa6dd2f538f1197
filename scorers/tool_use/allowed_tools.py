"""Scores whether an agent called only tools that it is allowed to call.

A call of another tool is certain. That there is none is known only if the telemetry has all calls.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_texts, check_tool
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import call_names
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.measures import ratio
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class AllowedTools(Share):
    """1 if only allowed tools were called, else 0."""

    name: ClassVar[str] = "allowed_tools"

    tools: tuple[str, ...] | None = None
    """The allowed tools; `*` stands for any characters, as in `mcp__github__*`. An empty list
    allows none.
    """
    delegations: bool = False
    """Handoffs, agents called as tools and final answers must be allowed, too."""
    partial: bool = False
    """The value is the share of the calls that were allowed."""

    def __post_init__(self) -> None:
        check_texts("tools", self.tools)
        for tool in self.tools or ():
            check_tool("tools", tool)

    @property
    def binary(self) -> bool:
        """Whether no value is between 0 and 1."""
        return not self.partial

    @property
    def missing_option(self) -> str:
        """What must be configured before there can be a score."""
        return "tools" if self.tools is None else ""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if self.tools is None:
            return Score.not_evaluated("no_reference", "no list of allowed tools is given")
        names = call_names(actual)
        checked = [
            at
            for at, call in enumerate(actual.tool_calls)
            if self.delegations or call.kind == "function"
        ]
        allowed = self._allowed({names[at] for at in checked})
        others = [at for at in checked if names[at] not in allowed]
        unknown = tools_unknown(actual)
        if unknown and (self.partial or not others):
            return unknown
        return self._score(len(checked), [(at, names[at]) for at in others])

    def _allowed(self, names: Set[str]) -> Set[str]:
        patterns = [tool_name(tool) for tool in self.tools or ()]
        return {name for name in names if any(fnmatchcase(name, one) for one in patterns)}

    def _score(self, checked: int, others: Sequence[tuple[int, str]]) -> Score:
        explanation = f"{checked - len(others)} of {checked} calls are allowed"
        if others:
            explanation += f"; not {listed([name for _, name in others])}"
        value = float(not others)
        if self.partial:
            value = ratio(checked - len(others), checked, if_empty=1.0)
        return Score(value, None, explanation, {"calls": [list(call) for call in others]})

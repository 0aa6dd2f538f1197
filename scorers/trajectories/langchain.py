"""LangChain's trajectory match: the tool calls of an invocation and of its reference turn come in,
whether they agree goes out.

The modes and the ways to compare arguments are those of LangChain's agentevals. Two things differ:
calls are paired so that as many as possible match, whichever comes first, and `subset` and
`superset` of arguments mean the same in all modes. See `pathgauge.scorers.trajectories.adk` for
when there is no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.options import FrozenMapping, check_choice, check_tool
from pathgauge.scorers.matching.argument_rules import ArgumentMode, Rule, Rules
from pathgauge.scorers.matching.comparison import Comparison, Order
from pathgauge.scorers.matching.measures import Measure, complete, contained, exact
from pathgauge.scorers.trajectories.adk import ParallelCalls, Reading, TrajectoryScorer, aligned

Mode = Literal[
    "exact",
    "in_order",
    "any_order",
    "unordered_exact",
    "subset",
    "superset",
    "strict",
    "subsequence",
    "unordered",
]
"""Which calls there may be; the last three are other names of `exact`, `in_order` and `any_order`.
"""

_MODES: Mapping[Mode, tuple[bool, Measure]] = {
    "exact": (True, exact),
    "in_order": (True, complete),
    "any_order": (False, complete),
    "unordered_exact": (False, exact),
    "subset": (False, contained),
    "superset": (False, complete),
    "strict": (True, exact),
    "subsequence": (True, complete),
    "unordered": (False, complete),
}
"""Whether the order counts, and what must be matched."""


@dataclass(frozen=True)
class TrajectoryMatch(TrajectoryScorer):
    """1 when the calls are the expected ones in the sense of `mode`, else 0."""

    name: ClassVar[str] = "trajectory_match"

    mode: Mode = "exact"
    """The expected calls and no others, in order or not; those and others; or some of them and no
    others.
    """
    tool_args_match_mode: ArgumentMode = "exact"
    """How the arguments of a call must be: equal; any; some of the expected ones; at least the
    expected ones.
    """
    tool_args_match_overrides: Mapping[str, Rule] = FrozenMapping()
    """Other modes for single tools, or the keys that alone are compared, such as `room.beds`."""
    parallel_calls: ParallelCalls = "in_order"
    """Whether the order counts, too, of calls that one model message asked for."""

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        check_choice("tool_args_match_mode", self.tool_args_match_mode, get_args(ArgumentMode))
        check_choice("parallel_calls", self.parallel_calls, get_args(ParallelCalls))
        overrides = {
            tool: _rule(tool, rule) for tool, rule in self.tool_args_match_overrides.items()
        }
        object.__setattr__(self, "tool_args_match_overrides", FrozenMapping(overrides))

    def read(self, comparison: Comparison) -> Reading:
        """As the mode says."""
        ordered, measure = _MODES[self.mode]
        rules = Rules(self.tool_args_match_mode, tuple(self.tool_args_match_overrides.items()))
        return aligned(
            comparison, rules, Order(ordered, self.parallel_calls == "in_order"), measure
        )


def _rule(tool: str, rule: Rule | list[str]) -> Rule:
    check_tool("tool_args_match_overrides", tool)
    if not isinstance(rule, str):
        return tuple(rule)
    check_choice(f"tool_args_match_overrides: {tool}", rule, get_args(ArgumentMode))
    return rule

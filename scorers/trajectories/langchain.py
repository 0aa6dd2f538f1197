"""LangChain's trajectory match.

The modes and the comparison of arguments are those of LangChain's agentevals, with two differences.
Calls are paired so that as many as possible match, instead of taking the first match. And `subset`
and `superset` of arguments mean the same in all modes. `pathgauge.scorers.trajectories.adk` lists
the cases without a value.
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
"""Which calls are allowed. The last three are aliases of `exact`, `in_order` and `any_order`."""

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
"""For each mode, whether the order counts, and which calls must be matched."""


@dataclass(frozen=True)
class TrajectoryMatch(TrajectoryScorer):
    """1 if the calls match the expected ones by `mode`, else 0."""

    name: ClassVar[str] = "trajectory_match"

    mode: Mode = "exact"
    """`exact`, `unordered_exact`: the expected calls and no others. `in_order`, `any_order`,
    `superset`: all expected calls, others are allowed. `subset`: no calls but expected ones.
    """
    tool_args_match_mode: ArgumentMode = "exact"
    """Arguments that match: equal ones; any; some of the expected ones; at least the expected ones.
    """
    tool_args_match_overrides: Mapping[str, Rule] = FrozenMapping()
    """Other modes for single tools, or the only keys to compare, such as `room.beds`."""
    parallel_calls: ParallelCalls = "in_order"
    """Whether the order also counts for calls that one model message requested."""

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        check_choice("tool_args_match_mode", self.tool_args_match_mode, get_args(ArgumentMode))
        check_choice("parallel_calls", self.parallel_calls, get_args(ParallelCalls))
        overrides = {
            tool: _rule(tool, rule) for tool, rule in self.tool_args_match_overrides.items()
        }
        object.__setattr__(self, "tool_args_match_overrides", FrozenMapping(overrides))

    def read(self, comparison: Comparison) -> Reading:
        """Compare by the mode."""
        ordered, measure = _MODES[self.mode]
        rules = Rules(self.tool_args_match_mode, tuple(self.tool_args_match_overrides.items()))
        order = Order(ordered, self.parallel_calls == "in_order")
        return aligned(comparison, rules, order, measure)


def _rule(tool: str, rule: Rule | list[str]) -> Rule:
    check_tool("tool_args_match_overrides", tool)
    if not isinstance(rule, str):
        return tuple(rule)
    check_choice(f"tool_args_match_overrides: {tool}", rule, get_args(ArgumentMode))
    return rule

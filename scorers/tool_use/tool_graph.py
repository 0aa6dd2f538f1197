"""The graph of tools: the results of an invocation come in, whether each offered the actions that
should be possible after it goes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import FrozenMapping, check_tool, tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import as_object, call_names
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, ToolCall


@dataclass(frozen=True)
class ToolGraph(Share):
    """1 when the `available_actions` in each result have all tools that the graph expects next,
    else 0.
    """

    name: ClassVar[str] = "tool_graph"

    graph: Mapping[str, tuple[str, ...]] = FrozenMapping()
    """For each tool, the tools that its result must offer."""

    def __post_init__(self) -> None:
        for tool, following in self.graph.items():
            for name in (tool, *following):
                check_tool("graph", name)
        graph = {
            tool_name(tool): tuple(map(tool_name, following))
            for tool, following in self.graph.items()
        }
        object.__setattr__(self, "graph", FrozenMapping(graph))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at. Where no tool of the graph was
        called, it has no value.
        """
        names = call_names(actual)
        judged = {
            index: call
            for index, call in enumerate(actual.tool_calls)
            if names[index] in self.graph and _ended_well(call)
        }
        lacking = {
            index: self._lacking(names[index], call)
            for index, call in judged.items()
            if call.result is not None
        }
        broken = [(index, tools) for index, tools in lacking.items() if tools]
        if broken:
            index, tools = broken[0]
            more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
            details = {"lacking": [[index, names[index], tools] for index, tools in broken]}
            return Score(
                0.0,
                None,
                f"{listed([names[index]])} (call {index}) did not offer {listed(tools)}{more}",
                details,
            )
        if unknown := tools_unknown(actual):
            return unknown
        if len(lacking) < len(judged):
            return Score.not_evaluated("results_not_recorded")
        if not judged:
            return Score.not_evaluated("not_applicable", "no tool of the graph was called")
        return Score(
            1.0,
            None,
            f"{listed([names[index] for index in judged])} offered what was expected",
            {"lacking": []},
        )

    def _lacking(self, name: str, call: ToolCall) -> list[str]:
        offered = _offered(as_object(call.result).get("available_actions"))
        return [tool for tool in self.graph[name] if tool not in offered]


def _ended_well(call: ToolCall) -> bool:
    """A call that failed without an answer offers nothing, and cannot."""
    return call.result is not None or call.error is None


def _offered(actions: Json) -> set[str]:
    """The tools among the actions of a result: names, or objects with the member `tool`; anything
    else is passed over.
    """
    entries = actions if isinstance(actions, list | tuple) else []
    tools = (entry.get("tool") if isinstance(entry, Mapping) else entry for entry in entries)
    return {tool_name(tool) for tool in tools if isinstance(tool, str)}

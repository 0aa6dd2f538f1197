"""Scores whether each tool result offered the actions that should be possible after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import FrozenMapping, check_tool
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import as_object, call_names
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import and_more
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, ToolCall


@dataclass(frozen=True)
class ToolGraph(Share):
    """1 if the `available_actions` of each result contain all tools that the graph expects next,
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
        """Score one invocation. The reference is not used. If no tool of the graph was called,
        there is no value.
        """
        names = call_names(actual)
        checked = {
            at: call
            for at, call in enumerate(actual.tool_calls)
            if names[at] in self.graph and _may_have_result(call)
        }
        missing = {
            at: self._missing(names[at], call)
            for at, call in checked.items()
            if call.result is not None
        }
        incomplete = [(at, tools) for at, tools in missing.items() if tools]
        if incomplete:
            at, tools = incomplete[0]
            more = and_more(incomplete)
            return Score(
                0.0,
                None,
                f"{listed([names[at]])} (call {at}) did not offer {listed(tools)}{more}",
                {"lacking": [[at, names[at], tools] for at, tools in incomplete]},
            )
        if unknown := tools_unknown(actual):
            return unknown
        if len(missing) < len(checked):
            return Score.not_evaluated("results_not_recorded")
        if not checked:
            return Score.not_evaluated("not_applicable", "no tool of the graph was called")
        tool_names = listed([names[at] for at in checked])
        return Score(1.0, None, f"{tool_names} offered all expected actions", {"lacking": []})

    def _missing(self, name: str, call: ToolCall) -> list[str]:
        offered = _offered(as_object(call.result).get("available_actions"))
        return [tool for tool in self.graph[name] if tool not in offered]


def _may_have_result(call: ToolCall) -> bool:
    """A call that failed without a result cannot offer actions, so it is not checked."""
    return call.result is not None or call.error is None


def _offered(actions: Json) -> set[str]:
    """The tools among the actions of a result: names, or objects with the member `tool`. Anything
    else is ignored.
    """
    entries = actions if isinstance(actions, list | tuple) else []
    tools = (entry.get("tool") if isinstance(entry, Mapping) else entry for entry in entries)
    return {tool_name(tool) for tool in tools if isinstance(tool, str)}

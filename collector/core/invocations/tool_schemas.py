"""Finds the schemas of the tools that the agents of an invocation could use: its nodes and tool
calls come in, schemas by name go out.

An agent's span says what its models were offered, else the first model call that asked for tools
does, as the others nearly always say the same. Where a tool was called that these do not define,
the model call that asked for it is looked at, and the span of the tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from pathgauge.collector.core.invocations.dialects.field_paths import first, value_at
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.tool_definitions import schemas
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tool_calls import renaming
from pathgauge.scorers.types import Json, ToolCall


def tool_schemas(
    agents: Sequence[Node], steps: Sequence[Step], tools: Sequence[Node], calls: Sequence[ToolCall]
) -> Mapping[str, Json]:
    """The schemas of all agents by the name of the tool, the first of a name; `steps` are the model
    calls that `calls` name as `group`.
    """
    found: Mapping[str, Json] = {}
    told: set[str | None] = set()
    for node in agents:
        if defined := _defined(
            node,
            (
                value_at(place, span)
                for span in node.spans
                for place in node.fields.tool_definitions
            ),
        ):
            found = {**defined, **found}
            told.add(node.span.span_id)
    asked = [(steps[call.group], call.name) for call in calls if call.group is not None]
    for run, step in _first_of_runs(chain((step for step, _ in asked), steps)).items():
        if run not in told and (defined := _of_step(step)):
            found = {**defined, **found}
            told.add(run)
    for step in dict.fromkeys(
        step for step, name in asked if name not in found and step.run in told
    ):
        found = {**_of_step(step), **found}
    for node in tools:
        if (
            node.name not in found
            and (recorded := first(node.spans, node.fields.tool_schema)) is not None
        ):
            found = {**schemas({"name": node.name, "parameters": recorded}), **found}
    return found


def _first_of_runs(steps: Iterable[Step]) -> dict[str | None, Step]:
    firsts: dict[str | None, Step] = {}
    for step in steps:
        firsts.setdefault(step.run, step)
    return firsts


def _of_step(step: Step) -> Mapping[str, Json]:
    return _defined(step.node, step.content.tool_definitions)


def _defined(node: Node, recorded: Iterable[Any]) -> Mapping[str, Json]:
    """What the first place that tells of arguments has."""
    defined = next((tools for raw in recorded if raw is not None and (tools := schemas(raw))), {})
    rename = renaming(node) if defined else None
    return {rename(name): schema for name, schema in defined.items()} if rename else defined

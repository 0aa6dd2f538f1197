"""Collects the argument schemas of the tools that the agents of an invocation could use.

The span of an agent states the tools, otherwise the first model call that asked for tools does:
later calls nearly always repeat the same definitions. If a called tool is missing from these, the
model call that asked for it and the span of the tool are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from pathgauge.collector.core.invocations.dialect_hooks import function_naming
from pathgauge.collector.core.invocations.dialects.field_paths import first, value_at
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.tool_definitions import schemas
from pathgauge.collector.core.invocations.node import Node
from pathgauge.scorers.types import Json, ToolCall

_Schemas = Mapping[str, Json]


def tool_schemas(
    agents: Sequence[Node], steps: Sequence[Step], tools: Sequence[Node], calls: Sequence[ToolCall]
) -> _Schemas:
    """Schemas by tool name over all agents; the first one seen wins. `steps` are the model calls
    that `calls` refer to by `group`.
    """
    by_run = {node.span.span_id: of_agent for node in agents if (of_agent := _of_agent(node))}
    asked = [(steps[call.group], call.name) for call in calls if call.group is not None]
    found: dict[str, Json] = {}
    _add(found, by_run.values())
    of_steps = _of_first_steps(chain((step for step, _ in asked), steps), by_run.keys())
    _add(found, of_steps.values())
    known_runs = by_run.keys() | of_steps.keys()
    missing = (step for step, name in asked if name not in found and step.run in known_runs)
    _add(found, [_of_step(step) for step in dict.fromkeys(missing)])
    for node in tools:
        if node.name not in found:
            _add(found, [_of_tool(node)])
    return found


def _add(found: dict[str, Json], more: Iterable[_Schemas]) -> None:
    for definitions in more:
        for name, schema in definitions.items():
            found.setdefault(name, schema)


def _of_first_steps(steps: Iterable[Step], known_runs: Iterable[str]) -> dict[str | None, _Schemas]:
    """The definitions of the first step of each run that has none yet."""
    firsts: dict[str | None, Step] = {}
    for step in steps:
        firsts.setdefault(step.run, step)
    known = set(known_runs)
    return {
        run: of_step
        for run, step in firsts.items()
        if run not in known and (of_step := _of_step(step))
    }


def _of_agent(node: Node) -> _Schemas:
    paths = node.fields.tool_definitions
    return _defined(node, (value_at(path, span) for span in node.spans for path in paths))


def _of_step(step: Step) -> _Schemas:
    return _defined(step.node, step.content.tool_definitions)


def _of_tool(node: Node) -> _Schemas:
    recorded = first(node.spans, node.fields.tool_schema)
    if recorded is None:
        return {}
    return schemas({"name": node.name, "parameters": recorded})


def _defined(node: Node, recorded: Iterable[Any]) -> _Schemas:
    """The schemas of the first value that has any."""
    defined = next((found for raw in recorded if raw is not None and (found := schemas(raw))), {})
    rename = function_naming(node) if defined else None
    if rename:
        return {rename(name): schema for name, schema in defined.items()}
    return defined

"""Combines the tool calls that the models asked for with the tool spans of an invocation.

Calls without a span (many handoffs) come from the model message alone, spans without a message from
the span alone. Calls are ordered by model call, then by their order in its message. A span without
a message is placed by its start time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pathgauge.collector.core.invocations.call_joining import join, join_rounds
from pathgauge.collector.core.invocations.call_kinds import call_kind
from pathgauge.collector.core.invocations.call_slots import Slot
from pathgauge.collector.core.invocations.dialect_hooks import (
    function_naming,
    unwrap_arguments,
    unwrap_result,
)
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPath, FieldPaths, first
from pathgauge.collector.core.invocations.errors import error_of_any, error_type
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import AskedCall, asked_calls
from pathgauge.collector.core.invocations.messages.unwrap import bare_arguments, bare_result
from pathgauge.collector.core.invocations.messages.values import decode
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tool_results import PromptResults
from pathgauge.scorers.types import Flag, Json, ToolCall

MAX_ASKED = 5_000
"""Bound on the calls of one invocation that are read. Scorers stop at fewer calls."""


def tool_calls(
    steps: Sequence[Step],
    tools: Sequence[Node],
    rounds: Sequence[Step],
    flags: set[Flag],
) -> tuple[ToolCall, ...]:
    """All calls of an invocation. `steps`, `tools` and `rounds` are its model calls, its tool spans
    and its spans that execute several calls, each by start. Adds to `flags` if content was
    truncated or removed.
    """
    slots = list(_asked(steps))
    join(slots, tools, steps)
    join_rounds(slots, rounds)
    results = PromptResults(steps, rounds)
    content = _Content(_empty_means_not_captured(steps), flags)
    slots.sort(key=lambda slot: slot.order)
    return tuple(_call(slot, results, content) for slot in slots)


def _asked(steps: Sequence[Step]) -> Iterator[Slot]:
    asked = (
        (group, step, index, call)
        for group, step in enumerate(steps)
        for index, call in enumerate(asked_calls(step.content.output))
    )
    for group, step, index, call in islice(asked, MAX_ASKED):
        rename = function_naming(step.node)
        named = call._replace(name=rename(call.name)) if rename is not None else call
        yield Slot((step.node.span.start_ns, index, 0, ""), group, step, named)


def _empty_means_not_captured(steps: Sequence[Step]) -> frozenset[FieldPath]:
    """Where `{}` means that content was not captured, as the model calls tell."""
    hooks = {
        dialect.empty_means_not_captured
        for step in steps
        for dialect in step.node.dialects
        if dialect.empty_means_not_captured is not None
    }
    models = [step.node.span for step in steps]
    return frozenset(path for hook in hooks for path in hook(models))


@dataclass(frozen=True, slots=True)
class _Content:
    """Reads recorded arguments and results."""

    empty_means_not_captured: frozenset[FieldPath]
    flags: set[Flag]

    def value(self, node: Node, paths: FieldPaths) -> Any:
        """The decoded value; flags truncated and removed content."""
        content = decode(first(node.spans, paths, self.empty_means_not_captured))
        if content.truncated:
            self.flags.add("truncated")
        if content.redacted:
            self.flags.add("redacted")
        return content.value


def _call(slot: Slot, results: PromptResults, content: _Content) -> ToolCall:
    node, by = slot.node, slot.by
    if node is not None and node.kind == "handoff" and slot.asked is None:
        content.flags.add("no_tool_spans")  # The call that passed control is unknown.
    elif slot.name is None:
        content.flags.add("unknown_dialect")
    name = slot.name or "unknown"
    result, error = _result(slot, results, content)
    start_ns, end_ns = _times(node)
    return ToolCall(
        name=name,
        arguments=_arguments(slot.asked, node, content),
        id=slot.call_id,
        result=result,
        error=_error(node, error),
        agent=by.worker() if by else None,
        run=by.run if by else None,
        kind=call_kind(name, node, by),
        group=slot.group if slot.group >= 0 else None,
        start_ns=start_ns,
        end_ns=end_ns,
    )


def _times(node: Node | None) -> tuple[int | None, int | None]:
    if node is None:
        return None, None
    return node.span.start_ns, node.span.end_ns


def _result(slot: Slot, results: PromptResults, content: _Content) -> tuple[Json, str | None]:
    """The result and the error that it reports: of the tool span, otherwise of a later prompt."""
    node = slot.node
    recorded = None
    if node is not None and node.kind != "handoff":
        recorded = content.value(node, node.fields.result)
    result = bare_result(recorded, unwrap_result(node))
    if result.value is not None or slot.asked is None:
        return result.value, result.error
    response = results.find(slot.group, slot.order[1])
    if response is None:
        return result.value, result.error
    unwrap = None
    if slot.step is not None:
        unwrap = unwrap_result(slot.step.node, slot.step.node.agent)
    in_prompt = bare_result(response.result, unwrap)
    return in_prompt.value, result.error or in_prompt.error or response.error


def _error(node: Node | None, reported: str | None) -> str | None:
    """The error of the span, or the one `reported` to the model if the span only has the type."""
    if node is None:
        return reported
    recorded = error_of_any(node)
    if recorded is None or (reported is not None and recorded == error_type(node)):
        return reported
    return recorded


def _arguments(
    asked: AskedCall | None, node: Node | None, content: _Content
) -> Mapping[str, Json] | str | None:
    """The arguments that the model wrote, otherwise those that the tool span has."""
    executed, unwrap = None, None
    if node is not None and node.kind == "tool":
        executed = content.value(node, node.fields.arguments)
        unwrap = unwrap_arguments(node)
    if asked is not None and isinstance(asked.arguments, dict):
        return asked.arguments
    if asked is not None and executed is None:
        return bare_arguments(asked.arguments)
    return bare_arguments(executed, unwrap)

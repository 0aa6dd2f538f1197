"""Puts the tool calls of one invocation together: what the models asked for, joined with what the
tool spans show.

A call that a model asked for is joined with its tool span by call id, else by name and occurrence
within the same agent run. Calls that no span shows (many handoffs) come from the model's message
alone; spans that no message names, from the span alone. The order is the order of the model calls
and of the calls inside each; a span without message takes its place by its start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, Place, first
from pathgauge.collector.core.invocations.errors import error_of_any, error_type
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import AskedCall, asked_calls
from pathgauge.collector.core.invocations.messages.unwrap import Result, bare_arguments, bare_result
from pathgauge.collector.core.invocations.messages.values import as_id, decode
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tool_results import ShownResults
from pathgauge.scorers.types import CallKind, Flag, Json, ToolCall

MAX_BESIDE = 100
"""Calls of one tool before a span that are compared with it."""

MAX_ASKED = 5_000
"""Calls of one invocation that are looked at; scorers give up earlier."""

_LAST = 1 << 30
"""A place behind everything that the same model message asked for."""


@dataclass(slots=True)
class _Slot:
    """A tool call in the making, with its place in the order."""

    place: tuple[int, int, int, str]
    group: int
    step: Step | None
    asked: AskedCall | None = None
    node: Node | None = None


def tool_calls(
    steps: Sequence[Step],
    tools: Sequence[Node],
    rounds: Sequence[Step],
    empty_means_not_captured: frozenset[Place],
    flags: set[Flag],
) -> tuple[ToolCall, ...]:
    """All calls of an invocation; `steps`, `tools` and `rounds` are its model calls, its tools and
    its spans of several tools, by start.

    Under `empty_means_not_captured` keys an empty object is nothing recorded. What is found cut or removed is added to
    `flags`.
    """
    slots = list(_asked(steps))
    _join(slots, tools, steps)
    _give_rounds(slots, rounds)
    shown = ShownResults(steps, rounds)
    return tuple(
        _call(slot, shown, empty_means_not_captured, flags)
        for slot in sorted(slots, key=lambda slot: slot.place)
    )


def _asked(steps: Sequence[Step]) -> Iterator[_Slot]:
    asked = (
        (group, step, index, call)
        for group, step in enumerate(steps)
        for index, call in enumerate(asked_calls(step.content.output))
    )
    for group, step, index, call in islice(asked, MAX_ASKED):
        rename = renaming(step.node)
        yield _Slot(
            (step.node.span.start_ns, index, 0, ""),
            group,
            step,
            call._replace(name=rename(call.name)) if rename else call,
        )


def renaming(node: Node) -> Callable[[str], str] | None:
    """What makes functions of the names that models call, by the dialect of a model's or agent's
    span, else by that of the agent above.
    """
    nodes = (node, node.agent)
    return next(
        (
            node.dialect.function_name
            for node in nodes
            if node and node.dialect and node.dialect.function_name
        ),
        None,
    )


def _join(slots: list[_Slot], tools: Sequence[Node], steps: Sequence[Step]) -> None:
    """Give every tool span to the call that asked for it, else a slot of its own."""
    by_id: dict[str, list[_Slot]] = defaultdict(list)
    by_name: dict[tuple[str | None, str], list[_Slot]] = defaultdict(list)
    numbers: dict[str | None, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        numbers[step.run].append(number)
    for slot in slots:
        if slot.step and slot.asked:
            by_id[slot.asked.id or ""].append(slot)
            by_name[slot.step.run, slot.asked.name].append(slot)
            by_name[None, slot.asked.name].append(slot)
    unnamed = []
    for node in tools:
        call_id = _call_id(node)
        if call_id is None or not _fill(_same_id(by_id.get(call_id, ()), node), node):
            unnamed.append(node)
    for node in unnamed:
        # A tool that hangs beside the agents instead of below one belongs to whichever asked for
        # it.
        run = node.agent.span.span_id if node.agent and node.agent.span.span_id in numbers else None
        name = node.name or ""
        if node.kind == "handoff":
            filled = _fill(_handoffs(slots, run), node)
        else:
            filled = _fill_by_name(by_name[run, name], node) or _fill_by_name(
                by_name[None, name], node, only_equal=True
            )
        if not filled:
            slots.append(
                _own_slot(node, steps, numbers[node.agent.span.span_id if node.agent else None])
            )


def _give_rounds(slots: Iterable[_Slot], rounds: Iterable[Step]) -> None:
    """Give a span that carries out all calls of a message to the call that was the only one."""
    asked: dict[str | None, list[_Slot]] = defaultdict(list)
    for slot in slots:
        if slot.step:
            asked[slot.step.run].append(slot)
    for one in rounds:
        before = asked[one.run]
        at = bisect_right(before, one.node.span.start_ns, key=lambda slot: slot.place[0]) - 1
        if (
            at >= 0
            and before[at].node is None
            and (at == 0 or before[at - 1].group != before[at].group)
        ):
            before[at].node = one.node


def _handoffs(slots: Iterable[_Slot], run: str | None) -> Iterator[_Slot]:
    """The calls that pass control on: the span of a handoff says to whom, but not by which call."""
    for slot in slots:
        if (
            slot.step
            and slot.asked
            and slot.step.run == run
            and slot.asked.name.startswith(_HANDOFFS)
        ):
            yield slot


def _fill(candidates: Iterable[_Slot], node: Node) -> bool:
    """Put the node into the first free slot."""
    slot = next((slot for slot in candidates if slot.node is None), None)
    if slot is not None:
        slot.node = node
    return slot is not None


def _fill_by_name(candidates: list[_Slot], node: Node, *, only_equal: bool = False) -> bool:
    """Put the node into the free slot that asks for what it was run with, else into the last ones
    asked for before it, in their order.

    A call without a span may lie between, which was rejected or whose span was lost. With
    `only_equal` the arguments have to tell.
    """
    candidates[:] = [slot for slot in candidates if slot.node is None]
    began = bisect_right(candidates, node.span.start_ns, key=lambda slot: slot.place[0])
    before = candidates[max(0, began - MAX_BESIDE) : began] or candidates[:MAX_BESIDE]
    executed = bare_arguments(
        decode(first(node.spans, node.fields.arguments)).value, _unwrap_arguments(node)
    )
    equal = [
        slot
        for slot in before
        if slot.asked and executed is not None and slot.asked.arguments == executed
    ]
    asking = equal or ([] if only_equal else before)
    return _fill((slot for slot in asking if slot.group == asking[-1].group), node)


def _same_id(candidates: Sequence[_Slot], node: Node) -> Sequence[_Slot]:
    """Those that this node may answer: some models use ids again in every message, in every agent,
    or for every tool of a message.
    """
    if len(candidates) < 2:
        return candidates
    run = node.agent.span.span_id if node.agent else None
    free = [slot for slot in candidates if slot.node is None and slot.step]
    same = [
        slot
        for slot in free
        if slot.step and slot.step.run == run and slot.asked and slot.asked.name == node.name
    ] or free
    before = [slot for slot in same if slot.place[0] <= node.span.start_ns]
    return [slot for slot in before if slot.group == before[-1].group] if before else same


def _own_slot(node: Node, steps: Sequence[Step], numbers: Sequence[int]) -> _Slot:
    """The slot of a span that no message names: after the last model call of its agent, of
    `numbers`, that began before it.
    """
    span = node.span
    before = bisect_right(
        numbers, span.start_ns, key=lambda number: steps[number].node.span.start_ns
    )
    group = numbers[before - 1] if before else -1
    start = steps[group].node.span.start_ns if group >= 0 else span.start_ns
    return _Slot((start, _LAST, span.start_ns, span.span_id), group, None, None, node)


def _call_id(node: Node) -> str | None:
    return as_id(first(node.spans, node.fields.call_id))


def _call(
    slot: _Slot, shown: ShownResults, empty_means_not_captured: frozenset[Place], flags: set[Flag]
) -> ToolCall:
    node, asked = slot.node, slot.asked
    if node is not None and node.kind == "handoff" and asked is None:
        flags.add("no_tool_spans")  # by which call control was passed on is not known
    name = (asked.name if asked else None) or (node.name if node else None) or "unknown"
    result = bare_result(
        _recorded(node, node.fields.result, empty_means_not_captured, flags)
        if node and node.kind != "handoff"
        else None,
        _unwrap_result(node),
    )
    told = shown.result(slot.group, slot.place[1]) if result.value is None and asked else None
    if told is not None:
        model = slot.step.node if slot.step else None
        result = bare_result(told.result, _unwrap_result(model, model.agent if model else None))
    by = node or (slot.step.node if slot.step else None)
    agent = by.agent if by else None
    return ToolCall(
        name=name,
        arguments=_arguments(
            asked, node if node and node.kind == "tool" else None, empty_means_not_captured, flags
        ),
        id=(asked.id if asked else None) or (_call_id(node) if node else None),
        result=result.value,
        error=_error(node, result.error or (told.error if told else None)),
        agent=by.worker() if by else None,
        run=agent.span.span_id if agent else None,
        kind=call_kind(name, node),
        group=slot.group if slot.group >= 0 else None,
        start_ns=node.span.start_ns if node else None,
        end_ns=node.span.end_ns if node else None,
    )


def _error(node: Node | None, told: str | None) -> str | None:
    """What failed, as the span says it, or as the model was told where the span knows no more than
    the type.
    """
    failed = error_of_any(node) if node else None
    return (
        told
        if failed is None or (told is not None and node and failed == error_type(node))
        else failed
    )


def _arguments(
    asked: AskedCall | None,
    node: Node | None,
    empty_means_not_captured: frozenset[Place],
    flags: set[Flag],
) -> Mapping[str, Json] | str | None:
    """What the model asked for, else what the tool was run with."""
    executed = (
        _recorded(node, node.fields.arguments, empty_means_not_captured, flags) if node else None
    )
    if asked is not None and isinstance(asked.arguments, dict):
        return asked.arguments
    return (
        bare_arguments(executed, _unwrap_arguments(node))
        if executed is not None or asked is None
        else bare_arguments(asked.arguments)
    )


def _unwrap_arguments(node: Node | None) -> Callable[[Any], Any] | None:
    return next(
        (
            one.unwrap_arguments
            for one in (node.dialects if node else ())
            if one.unwrap_arguments is not None
        ),
        None,
    )


def _unwrap_result(*nodes: Node | None) -> Callable[[Any], Result] | None:
    dialects = (dialect for node in nodes if node for dialect in node.dialects)
    return next(
        (dialect.unwrap_result for dialect in dialects if dialect.unwrap_result is not None), None
    )


def _recorded(
    node: Node, places: FieldPaths, empty_means_not_captured: frozenset[Place], flags: set[Flag]
) -> Any:
    content = decode(first(node.spans, places, empty_means_not_captured))
    if content.truncated:
        flags.add("truncated")
    if content.redacted:
        flags.add("redacted")
    return content.value


_HANDOFFS = ("transfer_to_", "handoff", "hand_off", "delegate_to_")
_COWORK = frozenset({"delegate_work_to_coworker", "ask_question_to_coworker"})
"""CrewAI's tools that call another agent, of whose work there is no span."""


def call_kind(name: str, node: Node | None) -> CallKind:
    """What a call of that name stands for; `node` is its tool span, where there is one."""
    tool_type = str(first(node.spans, node.fields.tool_type) or "") if node else ""
    transfer = first(node.spans, ("gen_ai.transfer.mode",)) if node else None
    passed_on = transfer == "pass_control" or (node is not None and node.kind == "handoff")
    if passed_on or tool_type == "TransferToAgentTool":
        return "handoff"
    if (
        tool_type == "AgentTool"
        or transfer == "return_to_caller"
        or (node is not None and (node.runs_agent or node.called))
    ):
        return "agent"
    if name.startswith(_HANDOFFS):
        return "handoff"
    if name.lower().replace(" ", "_") in _COWORK:
        return "agent"
    return "final_answer" if name == "final_answer" else "function"

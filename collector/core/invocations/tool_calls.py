"""Combines the tool calls that the models asked for with the tool spans of an invocation.

A call is joined with its tool span by call id; then all that are left, within the same agent run,
by name and equal arguments; then what is left of these by name and order. A span whose arguments
contradict the call that is left is a call of its own. Calls without a span (many handoffs) come
from the model message alone, spans without a message from the span alone. Calls are ordered by
model call, then by their order in its message. A span without a message is placed by its start
time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pathgauge.collector.core.invocations.call_slots import FreeSlots, Slot, call_id
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPath, FieldPaths, first
from pathgauge.collector.core.invocations.errors import error_of_any, error_type
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import AskedCall, asked_calls
from pathgauge.collector.core.invocations.messages.unwrap import bare_arguments, bare_result
from pathgauge.collector.core.invocations.messages.values import decode
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.same_arguments import are_equal, contradict
from pathgauge.collector.core.invocations.tool_results import PromptResults
from pathgauge.scorers.types import CallKind, Flag, Json, ToolCall

MAX_ASKED = 5_000
"""Bound on the calls of one invocation that are read. Scorers stop at fewer calls."""

_LAST = 1 << 30
"""An order behind all calls of the same model message."""

_HANDOFFS = ("transfer_to_", "handoff", "hand_off", "delegate_to_")
_COWORKER_TOOLS = frozenset(
    {"delegate_work_to_coworker", "ask_question_to_coworker"}
    | {"delegate_task_to_member", "delegate_task_to_members"}
)
"""Tools of CrewAI and Agno that call another agent. Its work has no span in CrewAI, and in Agno one
beside that of the tool.
"""


def tool_calls(
    steps: Sequence[Step],
    tools: Sequence[Node],
    rounds: Sequence[Step],
    empty_means_not_captured: frozenset[FieldPath],
    flags: set[Flag],
) -> tuple[ToolCall, ...]:
    """All calls of an invocation. `steps`, `tools` and `rounds` are its model calls, its tool spans
    and its spans that execute several calls, each by start.

    An empty object at the paths in `empty_means_not_captured` counts as not recorded. Adds to
    `flags` if content was truncated or removed.
    """
    slots = list(_asked(steps))
    _join(slots, tools, steps)
    _join_rounds(slots, rounds)
    results = PromptResults(steps, rounds)
    content = _Content(empty_means_not_captured, flags)
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


def function_naming(node: Node) -> Callable[[str], str] | None:
    """The dialect's `function_name` hook for this node, otherwise the one of the agent above it."""
    for one in (node, node.agent):
        if one is not None and one.dialect is not None and one.dialect.function_name is not None:
            return one.dialect.function_name
    return None


def _join(slots: list[Slot], tools: Sequence[Node], steps: Sequence[Step]) -> None:
    """Assign every tool span to the call that asked for it, or to a new slot."""
    index = _SlotIndex(slots, steps)
    left = [(node, _executed(node)) for node in tools if not index.fill_by_id(node)]
    left = [one for one in left if not index.fill_by_arguments(*one)]
    slots += [index.new_slot(node) for node, args in left if not index.fill_by_order(node, args)]


def _executed(node: Node) -> Any:
    """The arguments with which a tool was executed. The span of an agent has its prompt instead."""
    if node.kind != "tool":
        return None
    recorded = decode(first(node.spans, node.fields.arguments)).value
    return bare_arguments(recorded, _unwrap_arguments(node))


class _SlotIndex:
    """The calls that models asked for, by id and by name, and the model calls of each agent run."""

    def __init__(self, slots: Iterable[Slot], steps: Sequence[Step]) -> None:
        self._steps = steps
        self._numbers: dict[str | None, list[int]] = defaultdict(list)
        for number, step in enumerate(steps):
            self._numbers[step.run].append(number)
        self._by_id: dict[tuple[str, str | None, str | None], FreeSlots] = defaultdict(FreeSlots)
        """By call id, run and name; with `None` and `None` those of all runs and names."""
        self._by_name: dict[tuple[str | None, str], FreeSlots] = defaultdict(FreeSlots)
        """By run and name; with `None` those of all runs."""
        self._handoffs: dict[str | None, FreeSlots] = defaultdict(FreeSlots)
        """By run. The span of a handoff names the agent, but not the call."""
        for slot in slots:
            if slot.step and slot.asked:
                self._add(slot, slot.step.run, slot.asked)

    def _add(self, slot: Slot, run: str | None, asked: AskedCall) -> None:
        keys = {(run, asked.name), (None, asked.name)}
        for key in keys:
            self._by_name[key].add(slot)
        if asked.id:
            self._by_id[asked.id, run, asked.name].add(slot)
            self._by_id[asked.id, None, None].add(slot)
        if asked.name.startswith(_HANDOFFS):
            self._handoffs[run].add(slot)

    def fill_by_id(self, node: Node) -> bool:
        """Assign a tool span to the call with its id. Returns whether there is one.

        Some models reuse ids in every message, in every agent, or for every tool of a message.
        """
        identifier = call_id(node)
        if identifier is None:
            return False
        own = self._by_id[identifier, _run_of(node), node.name or ""]
        start_ns = node.span.start_ns
        slot = own.first_of_last_call(start_ns)
        return _fill(slot or self._by_id[identifier, None, None].first_of_last_call(start_ns), node)

    def fill_by_arguments(self, node: Node, executed: Any) -> bool:
        """Assign a tool span to the call of its agent run with equal arguments. Returns whether
        there is one.
        """
        slots = self._by_name[self._known_run_of(node), node.name or ""]
        return node.kind != "handoff" and _fill_equal(slots, node, executed)

    def fill_by_order(self, node: Node, executed: Any) -> bool:
        """Assign a tool span to a call that is left, unless their arguments contradict each other.
        Returns whether there is one.
        """
        run, name = self._known_run_of(node), node.name or ""
        if node.kind == "handoff":
            return _fill(self._handoffs[run].first(), node)
        if _fill_possible(self._by_name[run, name], node, executed):
            return True
        return _fill_equal(self._by_name[None, name], node, executed)

    def _known_run_of(self, node: Node) -> str | None:
        """A tool that is a sibling of the agents belongs to any that asked for it: `None`."""
        run = _run_of(node)
        return run if run in self._numbers else None

    def new_slot(self, node: Node) -> Slot:
        """A slot for a span without a message: after the last model call of its agent that started
        before it.
        """
        span = node.span
        numbers = self._numbers.get(_run_of(node), ())
        before = bisect_right(numbers, span.start_ns, key=self._start_of)
        group, start = -1, span.start_ns
        if before:
            group = numbers[before - 1]
            start = self._start_of(group)
        return Slot((start, _LAST, span.start_ns, span.span_id), group, None, None, node)

    def _start_of(self, number: int) -> int:
        return self._steps[number].node.span.start_ns


def _run_of(node: Node) -> str | None:
    if node.agent:
        return node.agent.span.span_id
    return None


def _join_rounds(slots: Iterable[Slot], rounds: Iterable[Step]) -> None:
    """Assign a span that executes all calls of a message, if the message has a single call."""
    asked: dict[str | None, list[Slot]] = defaultdict(list)
    for slot in slots:
        if slot.step:
            asked[slot.step.run].append(slot)
    for one in rounds:
        before = asked[one.run]
        at = bisect_right(before, one.node.span.start_ns, key=lambda slot: slot.order[0]) - 1
        if at < 0 or before[at].node is not None:
            continue
        if at == 0 or before[at - 1].group != before[at].group:
            before[at].node = one.node


def _fill(slot: Slot | None, node: Node) -> bool:
    """Assign the node to a slot, if there is one."""
    if slot is None:
        return False
    slot.node = node
    return True


def _fill_equal(candidates: FreeSlots, node: Node, executed: Any) -> bool:
    """Assign the node to a free slot with the same arguments."""
    if executed is None:
        return False
    before = candidates.last_before(node.span.start_ns)
    equal = [slot for slot in before if slot.asked and are_equal(slot.asked.arguments, executed)]
    return _fill_first_of_last_message(equal, node)


def _fill_possible(candidates: FreeSlots, node: Node, executed: Any) -> bool:
    """Assign the node to a free slot whose arguments may be the same."""
    before = candidates.last_before(node.span.start_ns)
    possible = [
        slot for slot in before if not slot.asked or not contradict(slot.asked.arguments, executed)
    ]
    return _fill_first_of_last_message(possible, node)


def _fill_first_of_last_message(slots: Sequence[Slot], node: Node) -> bool:
    """Other messages in between may have calls without a span, because they were rejected or their
    spans were lost.
    """
    return _fill(next((slot for slot in slots if slot.group == slots[-1].group), None), node)


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
        run=_run_of(by) if by else None,
        kind=call_kind(name, node),
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
    result = bare_result(recorded, _unwrap_result(node))
    if result.value is not None or slot.asked is None:
        return result.value, result.error
    response = results.find(slot.group, slot.order[1])
    if response is None:
        return result.value, result.error
    unwrap = None
    if slot.step is not None:
        unwrap = _unwrap_result(slot.step.node, slot.step.node.agent)
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
        unwrap = _unwrap_arguments(node)
    if asked is not None and isinstance(asked.arguments, dict):
        return asked.arguments
    if asked is not None and executed is None:
        return bare_arguments(asked.arguments)
    return bare_arguments(executed, unwrap)


def _unwrap_arguments(node: Node | None) -> Callable[[Any], Any] | None:
    if node is not None:
        for dialect in node.dialects:
            if dialect.unwrap_arguments is not None:
                return dialect.unwrap_arguments
    return None


def _unwrap_result(*nodes: Node | None) -> Callable[[Any], Result] | None:
    for node in filter(None, nodes):
        for dialect in node.dialects:
            if dialect.unwrap_result is not None:
                return dialect.unwrap_result
    return None


def call_kind(name: str, node: Node | None) -> CallKind:
    """The kind of a call by its name and its tool span, if there is one."""
    if node is not None:
        recorded = _recorded_kind(node)
        if recorded is not None:
            return recorded
    if name.startswith(_HANDOFFS):
        return "handoff"
    if name.lower().replace(" ", "_") in _COWORKER_TOOLS:
        return "agent"
    if name == "final_answer" or (node is not None and _ends_run(name, node)):
        return "final_answer"
    return "function"


def _ends_run(name: str, node: Node) -> bool:
    return any(name in dialect.final_tools for dialect in node.dialects)


def _recorded_kind(node: Node) -> CallKind | None:
    """The kind that a tool span states or its place in the tree shows."""
    tool_type = str(first(node.spans, node.fields.tool_type) or "")
    transfer = first(node.spans, ("gen_ai.transfer.mode",))
    if node.kind == "handoff" or transfer == "pass_control" or tool_type == "TransferToAgentTool":
        return "handoff"
    if node.runs_agent or node.called:
        return "agent"
    if tool_type == "AgentTool" or transfer == "return_to_caller":
        return "agent"
    return None

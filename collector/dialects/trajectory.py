"""Puts the tool calls of one invocation together: what the models asked for, joined with what the tool spans show.

A call that a model asked for is joined with its tool span by call id, else by name and occurrence within the same agent run. Calls
that no span shows (many handoffs) come from the model's message alone; spans that no message names, from the span alone. The order is
the order of the model calls and of the calls inside each; a span without message takes its place by its start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from collector.dialects.content import ModelContent
from collector.dialects.faults import error_of
from collector.dialects.messages import AskedCall, asked_calls
from collector.dialects.registry import FIELDS, first
from collector.dialects.tree import Node
from collector.dialects.values import as_id, decode, decoded
from scorers.types import CallKind, Flag, Json, ToolCall


class Step(NamedTuple):
    """One model call of an invocation: its node, its messages, and the agent run that made it."""

    node: Node
    content: ModelContent

    @property
    def run(self) -> str | None:
        """The span id of the agent that made the call; `None` outside any agent."""
        return self.node.agent.span.span_id if self.node.agent else None


MOST_ASKED = 5_000
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


def tool_calls(steps: Sequence[Step], tools: Sequence[Node], muted: frozenset[str], flags: set[Flag]) -> tuple[ToolCall, ...]:
    """All calls of an invocation; `steps` and `tools` are its model calls and tool spans by start.

    Under `muted` keys an empty object is nothing recorded. What is found cut or removed is added to `flags`.
    """
    slots = list(_asked(steps))
    _join(slots, tools, steps)
    return tuple(_call(slot, steps, muted, flags) for slot in sorted(slots, key=lambda slot: slot.place))


def _asked(steps: Sequence[Step]) -> Iterator[_Slot]:
    asked = ((group, step, index, call) for group, step in enumerate(steps) for index, call in enumerate(asked_calls(step.content.output)))
    for group, step, index, call in islice(asked, MOST_ASKED):
        yield _Slot((step.node.span.start_ns, index, 0, ""), group, step, call)


def _join(slots: list[_Slot], tools: Sequence[Node], steps: Sequence[Step]) -> None:
    """Give every tool span to the call that asked for it, else a slot of its own."""
    by_id: dict[str, list[_Slot]] = defaultdict(list)
    by_name: dict[tuple[str | None, str], list[_Slot]] = defaultdict(list)
    runs = {step.run for step in steps}
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
        # A tool that hangs beside the agents instead of below one belongs to whichever asked for it.
        run = node.agent.span.span_id if node.agent and node.agent.span.span_id in runs else None
        if not _fill(by_name.get((run, node.name or ""), ()), node):
            slots.append(_own_slot(node, steps))


def _fill(candidates: Iterable[_Slot], node: Node) -> bool:
    """Put the node into the first free slot."""
    slot = next((slot for slot in candidates if slot.node is None), None)
    if slot is not None:
        slot.node = node
    return slot is not None


def _same_id(candidates: Sequence[_Slot], node: Node) -> Sequence[_Slot]:
    """Those that this node may answer: some models use ids again in every message, in every agent, or for every tool of a message."""
    if len(candidates) < 2:
        return candidates
    run = node.agent.span.span_id if node.agent else None
    free = [slot for slot in candidates if slot.node is None and slot.step]
    same = [slot for slot in free if slot.step and slot.step.run == run and slot.asked and slot.asked.name == node.name] or free
    before = [slot for slot in same if slot.place[0] <= node.span.start_ns]
    return [slot for slot in before if slot.group == before[-1].group] if before else same


def _own_slot(node: Node, steps: Sequence[Step]) -> _Slot:
    """The slot of a span that no message names: after the last model call of its agent that began before it."""
    run = node.agent.span.span_id if node.agent else None
    span = node.span
    group = next((i for i in range(len(steps) - 1, -1, -1) if steps[i].run == run and steps[i].node.span.start_ns <= span.start_ns), -1)
    start = steps[group].node.span.start_ns if group >= 0 else span.start_ns
    return _Slot((start, _LAST, span.start_ns, span.span_id), group, None, None, node)


def _call_id(node: Node) -> str | None:
    return as_id(first(node.spans, FIELDS.call_id))


def _call(slot: _Slot, steps: Sequence[Step], muted: frozenset[str], flags: set[Flag]) -> ToolCall:
    node, asked = slot.node, slot.asked
    name = (node.name if node else None) or (asked.name if asked else None) or "unknown"
    result = _content(first(node.spans, FIELDS.result, muted), flags) if node else None
    if result is None and slot.step is not None and asked is not None:
        run = slot.step.run
        result = _shown_result((step for step in steps[slot.group + 1 :] if step.run == run), asked)
    by = node or (slot.step.node if slot.step else None)
    agent = by.agent if by else None
    return ToolCall(
        name=name,
        arguments=_arguments(asked, _content(first(node.spans, FIELDS.arguments, muted), flags) if node else None),
        id=(asked.id if asked else None) or (_call_id(node) if node else None),
        result=_unwrap(result),
        error=(error_of(node.spans) if node else None) or _error_in(result),
        agent=agent.name if agent else None,
        kind=_kind(name, node),
        group=slot.group if slot.group >= 0 else None,
        start_ns=node.span.start_ns if node else None,
        end_ns=node.span.end_ns if node else None,
    )


def _arguments(asked: AskedCall | None, executed: Any) -> Mapping[str, Json] | str | None:
    """What the model asked for, else what the tool was run with."""
    if asked is not None and isinstance(asked.arguments, dict):
        return asked.arguments
    value = executed if executed is not None or asked is None else asked.arguments
    return value if isinstance(value, dict | str) else None


def _content(raw: Any, flags: set[Flag]) -> Any:
    content = decode(raw)
    if content.truncated:
        flags.add("truncated")
    if content.redacted:
        flags.add("redacted")
    return content.value


def _shown_result(later: Iterable[Step], asked: AskedCall) -> Json:
    """What a later model call was shown as the result: by call id, by name where the call has none."""
    for step in later:
        for message in reversed(step.content.input):
            for response in message.responses:
                if response.id == asked.id if asked.id else response.name == asked.name:
                    return response.result
    return None


def _unwrap(result: Any) -> Json:
    """ADK wraps what is no object as `{"result": x}`."""
    if isinstance(result, dict) and result.keys() == {"result"}:
        return decoded(result["result"])
    return result


def _error_in(result: Any) -> str | None:
    """What a tool reports as an error in its own answer."""
    error = result.get("error") if isinstance(result, dict) else None
    return str(error) if error else None


_HANDOFFS = ("transfer_to_", "handoff", "hand_off", "delegate_to_")


def _kind(name: str, node: Node | None) -> CallKind:
    tool_type = str(first(node.spans, FIELDS.tool_type) or "") if node else ""
    transfer = first(node.spans, ("gen_ai.transfer.mode",)) if node else None
    if name.startswith(_HANDOFFS) or tool_type == "TransferToAgentTool" or transfer == "pass_control":
        return "handoff"
    if name == "final_answer":
        return "final_answer"
    if tool_type == "AgentTool" or transfer == "return_to_caller" or (node is not None and node.runs_agent):
        return "agent"
    return "function"

"""Assigns the tool spans of an invocation to the tool calls that the models asked for.

By call id first; then all spans that are left, within the same agent run, by name and equal
arguments; then what is left of these by name and order. A span whose arguments contradict the call
that is left is a call of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pathgauge.collector.core.invocations.call_kinds import HANDOFFS
from pathgauge.collector.core.invocations.call_slots import FreeSlots, Slot, call_id
from pathgauge.collector.core.invocations.dialect_hooks import unwrap_arguments
from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.unwrap import bare_arguments
from pathgauge.collector.core.invocations.messages.values import decode
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.rounds import is_inside
from pathgauge.collector.core.invocations.same_arguments import are_equal, contradict

_LAST = 1 << 30
"""An order behind all calls of the same model message."""


def join(slots: list[Slot], tools: Sequence[Node], steps: Sequence[Step]) -> None:
    """Assign every tool span to the call that asked for it, or to a new slot."""
    by_id = _SlotsById(slots)
    nodes = [node for node in tools if not by_id.fill(node)]
    if not nodes:  # the usual case
        return
    by_name = _SlotsByName(slots, steps)
    left = [(node, _executed(node)) for node in nodes]
    left = [one for one in left if not by_name.fill_equal(*one)]
    slots += [by_name.new_slot(node) for node, args in left if not by_name.fill_next(node, args)]


def _executed(node: Node) -> Any:
    """The arguments with which a tool was executed. The span of an agent has its prompt instead."""
    if node.kind != "tool":
        return None
    recorded = decode(first(node.spans, node.fields.arguments)).value
    return bare_arguments(recorded, unwrap_arguments(node))


class _SlotsById:
    """The calls that models asked for, by call id."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self._slots: dict[tuple[str, str | None, str | None], FreeSlots] = defaultdict(FreeSlots)
        """By call id, run and name; with `None` and `None` those of all runs and names."""
        for slot in slots:
            if slot.step and slot.asked and slot.asked.id:
                self._slots[slot.asked.id, slot.step.run, slot.asked.name].add(slot)
                self._slots[slot.asked.id, None, None].add(slot)

    def fill(self, node: Node) -> bool:
        """Assign a tool span to the call with its id. Returns whether there is one.

        Some models reuse ids in every message, in every agent, or for every tool of a message.
        """
        identifier = call_id(node)
        if identifier is None:
            return False
        own = self._slots[identifier, node.run, node.name or ""]
        start_ns = node.span.start_ns
        slot = own.first_of_last_call(start_ns)
        return _fill(slot or self._slots[identifier, None, None].first_of_last_call(start_ns), node)


class _SlotsByName:
    """The calls that models asked for, by name, and the model calls of each agent run."""

    def __init__(self, slots: Iterable[Slot], steps: Sequence[Step]) -> None:
        self._steps = steps
        self._numbers: dict[str | None, list[int]] = defaultdict(list)
        for number, step in enumerate(steps):
            self._numbers[step.run].append(number)
        self._slots: dict[tuple[str | None, str], FreeSlots] = defaultdict(FreeSlots)
        """By run and name; with `None` those of all runs."""
        self._handoffs: dict[str | None, FreeSlots] = defaultdict(FreeSlots)
        """By run. The span of a handoff names the agent, but not the call."""
        for slot in slots:
            if slot.step and slot.asked:
                self._add(slot, slot.step.run, slot.asked.name)

    def _add(self, slot: Slot, run: str | None, name: str) -> None:
        for key in {(run, name), (None, name)}:
            self._slots[key].add(slot)
        if name.startswith(HANDOFFS):
            self._handoffs[run].add(slot)

    def fill_equal(self, node: Node, executed: Any) -> bool:
        """Assign a tool span to the call of its agent run with equal arguments. Returns whether
        there is one.
        """
        slots = self._slots[self._known_run(node), node.name or ""]
        return node.kind != "handoff" and _fill_equal(slots, node, executed)

    def fill_next(self, node: Node, executed: Any) -> bool:
        """Assign a tool span to a call that is left, unless their arguments contradict each other.
        Returns whether there is one.
        """
        run, name = self._known_run(node), node.name or ""
        if node.kind == "handoff":
            return _fill(self._handoffs[run].first(), node)
        if _fill_possible(self._slots[run, name], node, executed):
            return True
        return _fill_equal(self._slots[None, name], node, executed)

    def _known_run(self, node: Node) -> str | None:
        """A tool that is a sibling of the agents belongs to any that asked for it: `None`."""
        return node.run if node.run in self._numbers else None

    def new_slot(self, node: Node) -> Slot:
        """A slot for a span without a message: after the last model call of its agent that started
        before it. A span around several model calls does not tell which of them asked for it.
        """
        span = node.span
        numbers = self._numbers.get(node.run, ())
        before = bisect_right(numbers, span.start_ns, key=self._start_of)
        group, start = -1, span.start_ns
        if before:
            group = numbers[before - 1]
            if not is_inside(node, self._steps[group].node):
                start = self._start_of(group)
        return Slot((start, _LAST, span.start_ns, span.span_id), group, None, None, node)

    def _start_of(self, number: int) -> int:
        return self._steps[number].node.span.start_ns


def join_rounds(slots: Iterable[Slot], rounds: Iterable[Step]) -> None:
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

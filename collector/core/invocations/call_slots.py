"""The tool calls of an invocation while they are read: slots, to which tool spans are assigned.

Thousands of spans may look for a slot among thousands, so no search looks at all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import AskedCall
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.invocations.node import Node

MAX_COMPARED = 100
"""Bound on the earlier calls of one tool that a span is compared with."""


@dataclass(slots=True)
class Slot:
    """A tool call under construction, with its sort key."""

    order: tuple[int, int, int, str]
    """Start of the model call, index in its message, start and id of the tool span."""
    group: int
    """The number of the model call; -1 if no model call came before."""
    step: Step | None
    asked: AskedCall | None = None
    node: Node | None = None

    @property
    def by(self) -> Node | None:
        """The node whose agent made the call."""
        if self.node is not None:
            return self.node
        return self.step.node if self.step else None

    @property
    def name(self) -> str | None:
        """The name that the model wrote, otherwise that of the tool span."""
        if self.asked is not None and self.asked.name:
            return self.asked.name
        return self.node.name if self.node else None

    @property
    def call_id(self) -> str | None:
        """The id that the model wrote, otherwise that of the tool span."""
        if self.asked is not None and self.asked.id:
            return self.asked.id
        return call_id(self.node) if self.node else None


def call_id(node: Node) -> str | None:
    """The call id that a tool span states."""
    return as_id(first(node.spans, node.fields.call_id))


class FreeSlots:
    """Slots without a tool span, in the order of their model calls.

    Slots that have got a span are skipped. They are removed only when many were skipped, because
    removing each one would copy the list as often.
    """

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._skipped = 0

    def add(self, slot: Slot) -> None:
        """Add a slot of the last model call so far."""
        self._slots.append(slot)

    def first(self) -> Slot | None:
        """The first one."""
        self._remove_skipped()
        return next(self._free(range(len(self._slots))), None)

    def last_before(self, start_ns: int) -> list[Slot]:
        """Up to `MAX_COMPARED` of those whose model call started by then, the last ones; if there
        are none, the first ones.
        """
        self._remove_skipped()
        before = islice(self._free(self._back_from(start_ns)), MAX_COMPARED)
        found = list(before)[::-1]
        return found or list(islice(self._free(range(len(self._slots))), MAX_COMPARED))

    def first_of_last_call(self, start_ns: int) -> Slot | None:
        """The first one of the last model call that started by then; if there is none, the first
        one.
        """
        self._remove_skipped()
        last = next(self._free(self._back_from(start_ns)), None)
        if last is None:
            return self.first()
        begin = bisect_left(self._slots, last.group, key=lambda slot: slot.group)
        return next(self._free(range(begin, len(self._slots))))

    def _back_from(self, start_ns: int) -> range:
        started = bisect_right(self._slots, start_ns, key=lambda slot: slot.order[0])
        return range(started - 1, -1, -1)

    def _free(self, positions: Iterable[int]) -> Iterator[Slot]:
        for at in positions:
            if self._slots[at].node is None:
                yield self._slots[at]
            else:
                self._skipped += 1

    def _remove_skipped(self) -> None:
        if self._skipped > MAX_COMPARED:
            self._slots = [slot for slot in self._slots if slot.node is None]
            self._skipped = 0

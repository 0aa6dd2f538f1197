"""Finds results of tool calls that no tool span holds: in later prompts, and in spans that execute
several calls.

The result is in the next input of the model that asked, under the id of the call, or under the name
of the tool if the call has no id.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import (
    AskedCall,
    Message,
    Response,
    asked_calls,
)

_Key = tuple[str | None, str, str | None]
"""The agent run, `id` or `name`, and the id of the call or the name of the tool."""


class _Asked(NamedTuple):
    """A call of one message."""

    call: AskedCall
    nth: int
    """Its number among the calls of the same name in the message."""
    same_name: Counter[str]
    """The number of calls by name; shared by all calls of the message."""


def _asked(step: Step) -> Iterator[_Asked]:
    same_name: Counter[str] = Counter()
    for call in asked_calls(step.content.output):
        yield _Asked(call, same_name[call.name], same_name)
        same_name[call.name] += 1


class PromptResults:
    """The results in the prompts of one invocation, read on first use."""

    def __init__(self, steps: Sequence[Step], rounds: Sequence[Step]) -> None:
        """`steps` are the model calls, `rounds` the spans that execute several tool calls, both by
        start.
        """
        self._steps = steps
        self._rounds = rounds
        self._found: dict[_Key, list[tuple[float, list[Response]]]] | None = None
        self._asked: dict[int, list[_Asked]] = {}

    def find(self, number: int, index: int) -> Response | None:
        """The first result after the `number`th model call for the `index`th tool call that it
        asked for.
        """
        if self._found is None:
            self._found = self._read()
        step = self._steps[number]
        if number not in self._asked:
            self._asked[number] = list(_asked(step))
        asked = self._asked[number][index]
        call = asked.call
        key: _Key = (step.run, "id", call.id) if call.id else (step.run, "name", call.name)
        found = self._found.get(key, [])
        at = bisect_right(found, float(number), key=lambda one: one[0])
        if at == len(found):
            return None
        responses = found[at][1]
        if call.id:
            return responses[-1]
        # Earlier calls of the same name were answered before; calls of one message are answered in
        # their order.
        first_answer = max(0, len(responses) - asked.same_name[call.name])
        if first_answer + asked.nth < len(responses):
            return responses[first_answer + asked.nth]
        return None

    def _read(self) -> dict[_Key, list[tuple[float, list[Response]]]]:
        found: dict[_Key, list[tuple[float, list[Response]]]] = defaultdict(list)
        for order, run, messages in sorted(self._ordered(), key=lambda one: one[0]):
            by_key: dict[_Key, list[Response]] = defaultdict(list)
            for response in (response for message in messages for response in message.responses):
                by_key[run, "id", response.id].append(response)
                by_key[run, "name", response.name].append(response)
            for key, responses in by_key.items():
                found[key].append((order, responses))
        return found

    def _ordered(self) -> Iterator[tuple[float, str | None, Sequence[Message]]]:
        """Messages with their order. A round is between the model calls before and after it."""
        for number, step in enumerate(self._steps):
            yield number, step.run, step.content.input
        starts = [step.node.span.start_ns for step in self._steps]
        for one in self._rounds:
            yield bisect_right(starts, one.node.span.start_ns) - 0.5, one.run, one.content.output

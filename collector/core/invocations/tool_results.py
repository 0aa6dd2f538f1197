"""Finds results that no tool span holds: model calls and spans of several tools come in, and what
they show of a call's result goes out.

The result is in the next input of the model that asked, under the call's id, or under the tool's
name where the call has none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import Message, Response, asked_calls

_Key = tuple[str | None, str, str | None]
"""The agent run, and what a result is known by there."""


class ShownResults:
    """What the models of one invocation were shown; read when first asked for."""

    def __init__(self, steps: Sequence[Step], rounds: Sequence[Step]) -> None:
        """`steps` are the model calls, `rounds` the spans that carried out several tool calls, both
        by start.
        """
        self._steps = steps
        self._rounds = rounds
        self._found: dict[_Key, list[tuple[float, list[Response]]]] | None = None

    def result(self, number: int, index: int) -> Response | None:
        """The result that is shown first of the `index`th call that the `number`th model call asked
        for.
        """
        if self._found is None:
            self._found = self._read()
        step = self._steps[number]
        calls = list(asked_calls(step.content.output))
        asked = calls[index]
        shown = self._found.get(
            (step.run, "id", asked.id) if asked.id else (step.run, "name", asked.name), []
        )
        at = bisect_right(shown, float(number), key=lambda one: one[0])
        if at == len(shown):
            return None
        responses = shown[at][1]
        if asked.id:
            return responses[-1]
        # Earlier calls of the same name were answered before, those of one message in their order.
        alike = [position for position, call in enumerate(calls) if call.name == asked.name]
        latest = responses[-len(alike) :]
        nth = alike.index(index)
        return latest[nth] if nth < len(latest) else None

    def _read(self) -> dict[_Key, list[tuple[float, list[Response]]]]:
        found: dict[_Key, list[tuple[float, list[Response]]]] = defaultdict(list)
        for place, run, messages in sorted(self._shown(), key=lambda one: one[0]):
            by_key: dict[_Key, list[Response]] = defaultdict(list)
            for response in (response for message in messages for response in message.responses):
                by_key[run, "id", response.id].append(response)
                by_key[run, "name", response.name].append(response)
            for key, responses in by_key.items():
                found[key].append((place, responses))
        return found

    def _shown(self) -> Iterator[tuple[float, str | None, Sequence[Message]]]:
        """A round has its place between the model calls before and after it."""
        for number, step in enumerate(self._steps):
            yield number, step.run, step.content.input
        starts = [step.node.span.start_ns for step in self._steps]
        for one in self._rounds:
            yield bisect_right(starts, one.node.span.start_ns) - 0.5, one.run, one.content.output

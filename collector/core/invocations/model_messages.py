"""Finds the messages of a model call, wherever its telemetry put them: a `Node` and its log records
come in, `Message`s go out.

Places, the first that has messages wins: span attributes; log records, then span events, named
`gen_ai.client.inference.operation.details`; the older message events, as log records, else as span
events. Texts that a distribution took out of spans are put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pathgauge.collector.core.invocations.dialects.adot import put_back
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, value_at
from pathgauge.collector.core.invocations.messages.message import Message, with_call_ids
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import decode, decoded
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import LogRecord
from pathgauge.scorers.types import Flag

DETAILS = "gen_ai.client.inference.operation.details"
_INPUT_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_OUTPUT_EVENTS = {"gen_ai.choice": "assistant"}
_OLDEST_EVENTS = {
    "gen_ai.content.prompt": "gen_ai.prompt",
    "gen_ai.content.completion": "gen_ai.completion",
}


class ModelContent:
    """The input and output messages of one model call, read when first asked for."""

    def __init__(self, node: Node, logs: Sequence[LogRecord], flags: set[Flag]) -> None:
        """`logs` are those of the node's spans in time order; what is found cut or removed is added
        to `flags`.
        """
        self._node = node
        self._logs = logs
        self._flags = flags
        self._input: tuple[Message, ...] | None = None
        self._output: tuple[Message, ...] | None = None

    @property
    def input(self) -> tuple[Message, ...]:
        """What the model was shown, earlier turns included."""
        if self._input is None:
            self._input = with_call_ids(
                self._find(self._node.fields.input_messages, "user", _INPUT_EVENTS)
            )
        return self._input

    @property
    def output(self) -> tuple[Message, ...]:
        """What the model answered."""
        if self._output is None:
            self._output = self._find(
                self._node.fields.output_messages, "assistant", _OUTPUT_EVENTS
            )
        return self._output

    @property
    def tool_definitions(self) -> Iterator[Any]:
        """What each place holds of the tools that the model was offered."""
        return self._values(self._node.fields.tool_definitions)

    def _find(
        self, places: FieldPaths, role: str, events: Mapping[str, str]
    ) -> tuple[Message, ...]:
        shown = next(
            (
                messages
                for raw in self._values(places)
                if raw not in (None, "") and (messages := self._read(raw, role))
            ),
            (),
        )
        complete = put_back(shown, self._logs, role) if self._logs else shown
        return (
            complete
            or tuple(_messages(self._log_events(), events))
            or tuple(_messages(self._span_events(), events))
        )

    def _values(self, places: FieldPaths) -> Iterator[Any]:
        """What the places hold, in the order of the places of content."""
        spans = self._node.own_spans
        for place in places:
            for span in spans:
                yield value_at(place, span)
        keys = [place for place in places if isinstance(place, str)]
        recorded = (log.attributes for log in self._logs if log.event_name == DETAILS)
        events = (
            event.attributes
            for span in spans
            for event in span.events
            if event.name == DETAILS or event.name in _OLDEST_EVENTS
        )
        for attributes in chain(recorded, events):
            yield from (attributes.get(key) for key in keys)

    def _read(self, raw: Any, role: str) -> tuple[Message, ...]:
        content = decode(raw)
        if content.truncated:
            self._flags.add("truncated")
        if content.redacted:
            self._flags.add("redacted")
        readers = (
            dialect.messages for dialect in self._node.dialects if dialect.messages is not None
        )
        reader = next(readers, parse_messages)
        return () if content.value is None else reader(content.value, role)

    def _log_events(self) -> Iterator[tuple[str, Any]]:
        for log in self._logs:
            yield log.event_name, log.body

    def _span_events(self) -> Iterator[tuple[str, Any]]:
        for span in self._node.own_spans:
            for event in span.events:
                yield (
                    event.name,
                    {
                        key: decoded(value) if key != "content" else value
                        for key, value in event.attributes.items()
                    },
                )


def _messages(events: Iterable[tuple[str, Any]], roles: Mapping[str, str]) -> Iterator[Message]:
    """The messages in the bodies of those events that have a role."""
    for name, body in events:
        if name in roles:
            yield from parse_messages(body, roles[name])

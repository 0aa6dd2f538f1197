"""Finds the messages of a model call, wherever its telemetry has them.

The first source with content wins: span attributes; then log records, then span events, named
`gen_ai.client.inference.operation.details`; then the older message events, first as log records,
then as span events. Texts that a distribution moved out of spans are restored. Tool calls that are
in none of them may be on the step around the model call, or in the prompt of the next one.

An output without content is recorded, too: an empty text, or an empty list of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from pathgauge.collector.core.invocations.dialects.adot import with_moved_texts
from pathgauge.collector.core.invocations.dialects.dialect import Dialect
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, first, value_at
from pathgauge.collector.core.invocations.messages.message import (
    Message,
    is_recorded,
    last_turn,
    most_telling,
    with_call_ids,
)
from pathgauge.collector.core.invocations.messages.parse import parse_last_turn, parse_messages
from pathgauge.collector.core.invocations.messages.values import EMPTY, decode, decoded
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import Attributes, LogRecord, Span
from pathgauge.scorers.types import Flag

_RESPONSE_ID = "gen_ai.response.id"
DETAILS = "gen_ai.client.inference.operation.details"
_INPUT_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_OUTPUT_EVENTS = {"gen_ai.choice": "assistant"}
_CONTENT_EVENTS = frozenset({DETAILS, "gen_ai.content.prompt", "gen_ai.content.completion"})
"""Span events with the content attributes of a span."""

_Field = Literal["input_messages", "output_messages", "tool_definitions"]


class ModelContent:
    """The input and output messages of one model call, read on first use."""

    def __init__(
        self,
        node: Node,
        logs: Sequence[LogRecord],
        flags: set[Flag],
        step: Node | None = None,
    ) -> None:
        """`logs`: the log records of the node's spans in time order. `step`: the step in which the
        node is the only model call. Adds to `flags` if content was truncated or removed.
        """
        self._node = node
        self._step = step
        self._logs = logs
        self._flags = flags
        self._input: tuple[Message, ...] | None = None
        self._turn: tuple[Message, ...] | None = None
        self._output: tuple[Message, ...] | None = None
        self.next: ModelContent | None = None
        """The next model call of the agent, if its prompt holds the tool calls of this one."""

    @property
    def input(self) -> tuple[Message, ...]:
        """The prompt, including earlier turns."""
        if self._input is None:
            found = self._find("input_messages", "user", _INPUT_EVENTS)
            self._input = with_call_ids(found)
        return self._input

    @property
    def turn(self) -> tuple[Message, ...]:
        """What users and models wrote in the prompt from the last text of a user on; all of it if
        there is none. Prompts repeat the whole conversation, of which only this part is read if
        possible. It may lack the results of tools.
        """
        if self._turn is None:
            self._turn = self._turn_alone() or last_turn(self.input)
        return self._turn

    def _turn_alone(self) -> tuple[Message, ...]:
        if self._input is not None or self._logs or any(map(_reads_messages, self._node.dialects)):
            return ()
        raw = next((one for one in self._values("input_messages") if one is not None), None)
        return parse_last_turn(decoded(raw))

    @property
    def output(self) -> tuple[Message, ...]:
        """The output of the model."""
        if self._output is None:
            found = self._find("output_messages", "assistant", _OUTPUT_EVENTS)
            if not _has_calls(found):
                found = self._output_of_step() or (*found, *self._calls_in_next_prompt())
            self._output = found
        return self._output

    @property
    def tool_definitions(self) -> Iterator[Any]:
        """The tools offered to the model: one value for each source that has some."""
        return self._values("tool_definitions")

    def _output_of_step(self) -> tuple[Message, ...]:
        """The output that the step has, if it has tool calls."""
        if self._step is None or not self._step.fields.step_output:
            return ()
        raw = first(self._step.spans, self._step.fields.step_output)
        messages = self._read(raw, "assistant")
        return messages if _has_calls(messages) else ()

    def _calls_in_next_prompt(self) -> tuple[Message, ...]:
        """The messages with tool calls that the next prompt has and this prompt has not."""
        if self.next is None:
            return ()
        known = sum(bool(message.calls) for message in self.turn)
        return tuple(message for message in self.next.turn if message.calls)[known:]

    def _find(self, field: _Field, role: str, events: Mapping[str, str]) -> tuple[Message, ...]:
        found, is_empty = self._in_attributes(field, role)
        if self._logs:
            found = with_moved_texts(found, self._logs, role)
        if is_recorded(found):
            return found
        in_logs = tuple(_messages(self._log_events(), events))
        in_spans = tuple(_messages(self._span_events(), events))
        empty = (Message(role, ""),) if is_empty and role == "assistant" else ()
        return most_telling((found, in_logs, in_spans, empty))

    def _in_attributes(self, field: _Field, role: str) -> tuple[tuple[Message, ...], bool]:
        """The messages, and whether a value before them says that there are none."""
        found: tuple[Message, ...] = ()
        is_empty = False
        for raw in self._values(field):
            if raw is None:
                continue
            is_empty = is_empty or raw in EMPTY
            messages = self._read(raw, role)
            if is_recorded(messages):
                return messages, is_empty
            found = found or messages
        return found, is_empty

    def _values(self, field: _Field) -> Iterator[Any]:
        """The values of a field: in span attributes, log records, then span events. Of several
        spans, that of the client, which knows the id of the response, has all that was said.
        """
        spans = self._node.own_spans
        if len(spans) > 1:
            spans = sorted(spans, key=_lacks_response_id)
        for path in getattr(self._node.fields, field):
            for span in spans:
                yield value_at(path, span)
        # Log records and events have other keys than the span.
        paths: FieldPaths = getattr(self._node.plan.fields, field)
        for attributes in chain(self._logged_content(), self._event_content()):
            yield from (attributes.get(path) for path in paths if isinstance(path, str))

    def _logged_content(self) -> Iterator[Attributes]:
        return (log.attributes for log in self._logs if log.event_name == DETAILS)

    def _event_content(self) -> Iterator[Attributes]:
        for span in self._node.own_spans:
            for event in span.events:
                if event.name in _CONTENT_EVENTS:
                    yield event.attributes

    def _read(self, raw: Any, role: str) -> tuple[Message, ...]:
        content = decode(raw)
        if content.truncated:
            self._flags.add("truncated")
        if content.redacted:
            self._flags.add("redacted")
        if content.value is None or content.value == "":
            return ()
        readers = (one.messages for one in self._node.dialects if one.messages is not None)
        return next(readers, parse_messages)(content.value, role)

    def _log_events(self) -> Iterator[tuple[str, Any]]:
        for log in self._logs:
            yield log.event_name, log.body

    def _span_events(self) -> Iterator[tuple[str, Any]]:
        for span in self._node.own_spans:
            for event in span.events:
                body = {
                    key: decoded(value) if key != "content" else value
                    for key, value in event.attributes.items()
                }
                yield event.name, body


def _lacks_response_id(span: Span) -> bool:
    return _RESPONSE_ID not in span.attributes


def _reads_messages(dialect: Dialect) -> bool:
    return dialect.messages is not None


def _has_calls(messages: Iterable[Message]) -> bool:
    return any(message.calls for message in messages)


def _messages(events: Iterable[tuple[str, Any]], roles: Mapping[str, str]) -> Iterator[Message]:
    """The messages in the bodies of the events that have a role."""
    for name, body in events:
        if name in roles:
            yield from parse_messages(body, roles[name])

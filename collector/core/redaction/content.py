"""Removes content from records: messages, arguments, results and answers.

Only attributes that scoring needs are kept. Of the messages of model calls, the names and ids of
the tool calls are kept, those in prompts only if outputs lack them. Their arguments become a
placeholder, because a call without arguments would mean that the tool was called with none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as Repeated
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.feedback.forms import USER_FEEDBACK, feedback_keys, may_answer
from pathgauge.collector.core.invocations.dialects import Dialect, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    Flattened,
    InEvent,
    JsonMember,
    value_at,
)
from pathgauge.collector.core.invocations.messages.message import last_turn
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.own_events import EVALUATION_RESULT
from pathgauge.collector.core.otlp.spans import (
    LogRecord,
    Span,
    decode_attributes,
    decode_value,
    encode_value,
)
from pathgauge.collector.core.redaction.needed_keys import NeededKeys
from pathgauge.collector.core.redaction.parsing import encoded
from pathgauge.collector.core.redaction.replace import MASKED, RedactionCounts
from pathgauge.collector.core.redaction.sparse_json import insert, only_scalars
from pathgauge.collector.core.redaction.stripped_messages import (
    flattened,
    stripped,
    stripped_choice,
    without_text,
)
from pathgauge.collector.core.redaction.values import has_members

_CHOICE = "gen_ai.choice"
_DETAILS = "gen_ai.client.inference.operation.details"
_INPUT_MESSAGES, _OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"

_EVENTS = frozenset({_CHOICE, _DETAILS, "exception", MASKED, EVALUATION_RESULT, USER_FEEDBACK})
"""Names of span events that are kept. Others may be content: some bridges write log messages as
event names.
"""

_TRACESTATE_MEMBER = "pathgauge="


class ContentFilter:
    """Removes the content of records, in place."""

    def __init__(self, needed: NeededKeys) -> None:
        self._needed = needed
        self._event_names = _EVENTS | needed.event_keys.keys()

    def attributes(self, pairs: Repeated[KeyValue], counts: RedactionCounts) -> None:
        """Filter attributes that hold no messages."""
        self._keep(pairs, {}, counts)

    def span(self, span: Span, proto: SpanProto, counts: RedactionCounts) -> None:
        """Filter a span: changes `proto`; `span` is the original."""
        kind, dialects = self._needed.registry.classify(span)
        added = self._json_members(span.attributes) | _turn_name(span, kind, dialects)
        if kind == "model":
            added |= self._outputs(span, dialects) | _calls_in_prompt(span, dialects)
        of_people = feedback_keys if may_answer(span.raw) else _no_keys
        self._keep(proto.attributes, added, counts, of_people(span.attributes))
        for event in proto.events:
            attributes = decode_attributes(event.attributes)
            added = self._event_output(event.name, attributes, dialects)
            event_keys = self._needed.event_keys.get(event.name, frozenset())
            event_keys |= of_people(attributes)
            self._keep(event.attributes, added, counts, event_keys)
            if event.name not in self._event_names:
                event.name = MASKED
                counts["content", "drop"] += 1
        for link in proto.links:
            self._keep(link.attributes, {}, counts)
            link.trace_state = _own_member(link.trace_state)
        proto.trace_state = _own_member(proto.trace_state)
        if proto.HasField("status") and proto.status.message:
            proto.status.message = ""
            counts["content", "drop"] += 1

    def log(self, log: LogRecord, proto: LogRecordProto, counts: RedactionCounts) -> None:
        """Filter a log record: changes `proto`; `log` is the original."""
        name = log.event_name
        added = self._event_output(name, log.attributes, ())
        of_people = feedback_keys if may_answer(log.raw) else _no_keys
        self._keep(proto.attributes, added, counts, of_people(log.attributes))
        if not proto.HasField("body"):
            return
        body = decode_value(proto.body)
        output = self._event_output(name, body, ()) if isinstance(body, dict) else {}
        proto.ClearField("body")
        if output:
            kept = {
                key: value if key == "finish_reason" else orjson.loads(value)
                for key, value in output.items()
            }
            proto.body.CopyFrom(encode_value(kept))
        counts["content", "drop"] += 1

    def _keep(
        self,
        pairs: Repeated[KeyValue],
        added: Mapping[str, Any],
        counts: RedactionCounts,
        also_needed: frozenset[str] = frozenset(),
    ) -> None:
        """Keep the needed attributes, and add replacements for others."""
        for index in reversed(range(len(pairs))):
            key = pairs[index].key
            is_needed = key in self._needed.needed or key in also_needed
            if not is_needed and self._needed.prefixes:
                is_needed = key.startswith(self._needed.prefixes)
            if not is_needed or has_members(pairs[index].value):
                del pairs[index]
                counts["content", "drop"] += 1
        pairs.extend(KeyValue(key=key, value=encode_value(value)) for key, value in added.items())

    def _json_members(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The needed members of JSON attributes."""
        found = {}
        for key, paths in self._needed.members.items():
            if key in attributes:
                kept = only_scalars(decoded(attributes[key]), paths)
                if kept is not None:
                    found[key] = encoded(kept)
        return found

    def _outputs(self, span: Span, dialects: tuple[Dialect, ...]) -> dict[str, Any]:
        """The tool calls in the output of a model, at the keys that held the messages. Where the
        messages are in an attribute, the dialects of the span know better than others.
        """
        found: dict[str, Any] = {}
        own = [path for dialect in dialects for path in dialect.fields.output_messages]
        for path in dict.fromkeys((*own, *self._needed.outputs)):
            if isinstance(path, Derived | InEvent):
                continue
            messages = stripped(decoded(value_at(path, span)), dialects)
            if messages is None:
                continue
            if isinstance(path, Flattened):
                found.update(flattened(messages, path.prefix))
            else:
                key = path if isinstance(path, str) else path.key
                if key not in found:
                    found[key] = encoded(self._with_members(span, path, messages))
        return found or _derived_output(span, dialects)

    def _with_members(
        self, span: Span, path: str | JsonMember, messages: list[dict[str, Any]]
    ) -> Any:
        """The messages with the other needed members of their attribute, which are members of the
        first message, or stand beside the messages.
        """
        key = path if isinstance(path, str) else path.key
        kept = only_scalars(decoded(span.attributes[key]), self._needed.members.get(key, ()))
        container, items = next(iter(kept.items())) if isinstance(kept, dict) else ("", None)
        if isinstance(items, list):
            return {container: [messages[0] | items[0], *messages[1:]]}
        if isinstance(path, str):
            return messages
        whole = kept if isinstance(kept, dict) else {}
        insert(whole, path.path, messages)
        return whole

    def _event_output(
        self, event: str, attributes: Mapping[str, Any], dialects: tuple[Dialect, ...]
    ) -> dict[str, Any]:
        """The tool calls in an event with the output of a model; empty for other events."""
        if event == _CHOICE:
            return stripped_choice(attributes, dialects)
        if event == _DETAILS:
            return self._details(attributes, dialects)
        return {}

    def _details(
        self, attributes: Mapping[str, Any], dialects: tuple[Dialect, ...]
    ) -> dict[str, Any]:
        found = {}
        for key in self._needed.outputs:
            if isinstance(key, str) and key in attributes:
                messages = stripped(decoded(attributes[key]), dialects)
                if messages is not None:
                    found[key] = encoded(messages)
        return found


def _derived_output(span: Span, dialects: tuple[Dialect, ...]) -> dict[str, Any]:
    """The tool calls in an output that a function computes from several attributes. They are
    written as in the conventions, because there is no single key to put them back to.
    """
    paths = (path for dialect in dialects for path in dialect.fields.output_messages)
    for path in paths:
        if isinstance(path, Derived):
            messages = stripped(decoded(path.find(span)), dialects)
            if messages is not None:
                return {_OUTPUT_MESSAGES: encoded(messages)}
    return {}


def _calls_in_prompt(span: Span, dialects: tuple[Dialect, ...]) -> dict[str, Any]:
    """The tool calls of this turn in a prompt, for instrumentations that have them nowhere else."""
    paths = (
        path
        for dialect in dialects
        if dialect.calls_in_next_prompt
        for path in dialect.fields.input_messages
    )
    for path in paths:
        messages = last_turn(parse_messages(decoded(value_at(path, span)), "user"))
        with_calls = [without_text(message) for message in messages if message.calls]
        if with_calls:
            return {_INPUT_MESSAGES: encoded(with_calls)}
    return {}


def _turn_name(span: Span, kind: Kind, dialects: tuple[Dialect, ...]) -> dict[str, Any]:
    """The agent of a turn, which some dialects find in the input of the agent."""
    name_of = dialects[0].name_of if kind == "turn" else None
    name = name_of(span) if name_of is not None else None
    if name is None:
        return {}
    return {"gen_ai.agent.name": name}


def _own_member(trace_state: str) -> str:
    members = map(str.strip, trace_state.split(","))
    return ",".join(member for member in members if member.startswith(_TRACESTATE_MEMBER))


def _no_keys(attributes: Mapping[str, Any]) -> frozenset[str]:
    return frozenset()

"""Takes content out of records: messages, arguments, results and answers go, and what scoring needs
of their structure stays.

Only attributes that are known to be needed stay. Of the messages of model calls there stay the
names and ids of the tool calls in them, with a placeholder for the arguments, so that a call whose
arguments were removed is not taken for one without any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import orjson
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as Repeated
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.invocations.dialects import Dialect, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Flattened, Member, value_at
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import (
    LogRecord,
    Span,
    decode_attributes,
    decode_value,
    encode_value,
)
from pathgauge.collector.core.redaction.needed_keys import Path, Structure
from pathgauge.collector.core.redaction.parsing import encoded
from pathgauge.collector.core.redaction.replace import MASKED, RedactionCounts
from pathgauge.collector.core.redaction.values import has_members

_CHOICE = "gen_ai.choice"
_DETAILS = "gen_ai.client.inference.operation.details"
_CALLS = "ai.response.toolCalls"
"""A list of calls, and no messages."""

_EVENTS = frozenset({_CHOICE, _DETAILS, "exception"})
"""Events of spans that are known by their names; some bridges write log messages there."""

_OWN_MEMBER = "pathgauge="


class ContentFilter:
    """Removes the content of records, in place."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure

    def attributes(self, pairs: Repeated[KeyValue], counts: RedactionCounts) -> None:
        """Attributes of what holds no messages."""
        self._keep(pairs, {}, counts)

    def span(self, span: Span, proto: SpanProto, counts: RedactionCounts) -> None:
        """A span; `proto` is changed, `span` says what it was."""
        kind, dialects = self._structure.registry.classify(span)
        outputs = self._outputs(span, dialects) if kind == "model" else {}
        self._keep(
            proto.attributes,
            self._parts(span.attributes) | outputs | _name(span, kind, dialects),
            counts,
        )
        for event in proto.events:
            self._keep(
                event.attributes,
                self._shown(event.name, decode_attributes(event.attributes), dialects),
                counts,
            )
            if event.name not in (*_EVENTS, MASKED):
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
        """A log record; `proto` is changed, `log` says what it was."""
        name = log.event_name
        self._keep(proto.attributes, self._shown(name, log.attributes, ()), counts)
        if proto.HasField("body"):
            body = decode_value(proto.body)
            shown = self._shown(name, body, ()) if isinstance(body, dict) else {}
            proto.ClearField("body")
            if shown:
                told = {
                    key: value if key == "finish_reason" else orjson.loads(value)
                    for key, value in shown.items()
                }
                proto.body.CopyFrom(encode_value(told))
            counts["content", "drop"] += 1

    def _keep(
        self, pairs: Repeated[KeyValue], instead: Mapping[str, Any], counts: RedactionCounts
    ) -> None:
        """Leave what is needed; `instead` are values that stand for others or are added."""
        needed = self._structure.needed
        for index in reversed(range(len(pairs))):
            if pairs[index].key not in needed or has_members(pairs[index].value):
                del pairs[index]
                counts["content", "drop"] += 1
        pairs.extend(KeyValue(key=key, value=encode_value(value)) for key, value in instead.items())

    def _parts(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The needed parts of JSON attributes."""
        found = {}
        for key, paths in self._structure.members.items():
            if key in attributes:
                parts = _sparse(decoded(attributes[key]), paths)
                if parts is not None:
                    found[key] = encoded(parts)
        return found

    def _outputs(self, span: Span, dialects: tuple[Dialect, ...]) -> dict[str, Any]:
        """The calls in the messages of a model, at the keys where its messages were."""
        found: dict[str, Any] = {}
        for place in self._structure.outputs:
            if not isinstance(place, str | Member | Flattened):
                continue
            messages = _skeleton(decoded(value_at(place, span)), dialects)
            if messages is None:
                continue
            if isinstance(place, Flattened):
                found.update(_flattened(messages, place.prefix))
            else:
                key = place if isinstance(place, str) else place.key
                found[key] = encoded(self._around(span, key, messages))
        if _CALLS in span.attributes:
            calls = _skeleton(
                {"role": "assistant", "tool_calls": decoded(span.attributes[_CALLS])}, ()
            )
            found[_CALLS] = encoded([part for message in calls or () for part in message["parts"]])
        return found

    def _around(self, span: Span, key: str, messages: list[dict[str, Any]]) -> Any:
        """The messages, with the other needed parts of their attribute, which lie beside the first
        of them.
        """
        parts = _sparse(decoded(span.attributes[key]), self._structure.members.get(key, ()))
        container, beside = next(iter((parts or {}).items()), ("", None))
        return (
            {container: [messages[0] | beside[0], *messages[1:]]}
            if isinstance(beside, list)
            else messages
        )

    def _shown(
        self, event: str, members: Mapping[str, Any], dialects: tuple[Dialect, ...]
    ) -> dict[str, Any]:
        """What stays of an event that shows the output of a model."""
        if event == _CHOICE:
            messages = _skeleton({key: decoded(value) for key, value in members.items()}, dialects)
            calls = [part for message in messages or () for part in message["parts"]]
            shown = {"message": encoded(calls)} if calls else {}
            return shown | {
                key: value
                for key, value in members.items()
                if key == "finish_reason" and isinstance(value, str)
            }
        if event == _DETAILS:
            places = (
                place
                for place in self._structure.outputs
                if isinstance(place, str) and place in members
            )
            found = {place: _skeleton(decoded(members[place]), dialects) for place in places}
            return {
                place: encoded(messages)
                for place, messages in found.items()
                if messages is not None
            }
        return {}


def _name(span: Span, kind: Kind, dialects: tuple[Dialect, ...]) -> dict[str, Any]:
    """The agent whose turn it is, where that is told by what the agent was given."""
    naming = dialects[0].name_of if kind == "turn" else None
    name = naming(span) if naming is not None else None
    return {} if name is None else {"gen_ai.agent.name": name}


def _skeleton(value: Any, dialects: tuple[Dialect, ...]) -> list[dict[str, Any]] | None:
    """The assistant's messages in the form of the GenAI conventions, with nothing but the calls in
    them.
    """
    if value is None:
        return None
    reader = next(
        (dialect.messages for dialect in dialects if dialect.messages is not None), parse_messages
    )
    return [
        _without_text(message)
        for message in reader(value, "assistant")
        if message.role == "assistant"
    ] or None


def _without_text(message: Message) -> dict[str, Any]:
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": MASKED}
        for call in message.calls
    ]
    shown = {
        "role": "assistant",
        "parts": [
            {key: value for key, value in call.items() if value is not None} for call in calls
        ],
    }
    return (
        shown if message.finish_reason is None else shown | {"finish_reason": message.finish_reason}
    )


def _flattened(messages: list[dict[str, Any]], prefix: str) -> Iterator[tuple[str, Any]]:
    for number, message in enumerate(messages):
        for key in ("role", "finish_reason"):
            if key in message:
                yield f"{prefix}.{number}.{key}", message[key]
        for index, part in enumerate(message["parts"]):
            yield from (
                (f"{prefix}.{number}.parts.{index}.{key}", value) for key, value in part.items()
            )


def _sparse(value: Any, paths: tuple[Path, ...]) -> dict[str, Any] | None:
    """An object of the scalars at the paths alone; `None` when there are none. Indices of lists are
    0.
    """
    found: dict[str, Any] = {}
    for path in paths:
        leaf = _at(value, path)
        if leaf is None or isinstance(leaf, dict | list):
            continue
        _plant(found, path, leaf)
    return found or None


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def _plant(tree: Any, path: Path, leaf: Any) -> None:
    for step, after in pairwise(path):
        tree = (
            tree.setdefault(step, {} if isinstance(after, str) else [{}])
            if isinstance(step, str)
            else tree[step]
        )
    tree[path[-1]] = leaf


def _own_member(trace_state: str) -> str:
    return ",".join(
        member
        for member in map(str.strip, trace_state.split(","))
        if member.startswith(_OWN_MEMBER)
    )

"""Redacts values at any nesting: attributes, lists, objects, JSON inside text, and JSON inside
that.

A member of an object has a path as its key, `gen_ai.tool.call.arguments.card.number`. List indices
are not part of paths.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import orjson
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as Repeated
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from pathgauge.collector.core.invocations.messages.values import REDACTED_KEY
from pathgauge.collector.core.redaction.parsing import (
    MAX_LEVELS,
    encoded,
    leniently_parsed,
    parsed,
)
from pathgauge.collector.core.redaction.plain_text import MAX_GROWTH, DroppedError, PlainText
from pathgauge.collector.core.redaction.replace import MASKED, RedactionCounts, Replacements
from pathgauge.collector.core.redaction.rules import Action, KeyActions, path_below

CALL_IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId"})
"""Members of messages that hold the id of a call."""

_SMALLEST_CARD = 10**12


class Values:
    """Redacts the values of one export request in place, and counts them."""

    def __init__(
        self,
        keys: KeyActions,
        replacements: Replacements,
        names: Collection[str],
        ids: Collection[str],
        counts: RedactionCounts,
    ) -> None:
        """Detectors skip the values of `names`. Different values of `ids` must stay different."""
        self._keys = keys
        self._replacements = replacements
        self._names = names
        self._ids = ids
        self.counts = counts
        self._plain = PlainText(replacements, counts)

    def pairs(self, pairs: Repeated[KeyValue], path: str = "") -> None:
        """Redact attributes, or the members of an object at `path`."""
        for index in reversed(range(len(pairs))):
            try:
                self._pair(pairs[index], path)
            except DroppedError:
                del pairs[index]

    def text(self, text: str, path: str, *, identity: bool = False, level: int = 0) -> str:
        """Redact text, which may be encoded JSON. Raises `DroppedError`."""
        if not text or not (self._plain.needs_redaction(text) or self._keys.reach_into(path)):
            return text
        value, levels = parsed(text)
        if levels and level + levels <= MAX_LEVELS:
            return self._parsed(text, value, encoded, path, identity=identity, level=level)
        if self._keys.may_find(path, text):
            return self._unparsed(text, path, identity=identity, level=level)
        head, newline, rest = text.partition("\n")
        if newline and not levels and parsed(rest)[1]:
            redacted = self.text(rest, path, identity=identity, level=level)
            return self._plain.redacted(head, identity=identity) + newline + redacted
        return self._plain.redacted(text, identity=identity)

    def field(self, text: str, path: str) -> str:
        """Redact the text of a field that is not an attribute; empty if it is dropped."""
        action = self._keys.of(path)
        if not text or action == "keep":
            return text
        try:
            if action is None:
                return self.text(text, path)
            return self._replacement(text.encode(), action)
        except DroppedError:
            return ""

    def value(self, value: AnyValue, path: str, *, identity: bool = False) -> None:
        """Redact an OTLP value of any kind. Raises `DroppedError`."""
        kind = value.WhichOneof("value")
        if kind == "string_value":
            text = value.string_value
            redacted = self.text(text, path, identity=identity)
            if redacted is not text:
                value.string_value = redacted
        elif kind == "kvlist_value":
            self.pairs(value.kvlist_value.values, path)
        elif kind == "array_value":
            self._items(value.array_value.values, path, identity)
        elif kind == "bytes_value":
            value.bytes_value = self._bytes(value.bytes_value, path, identity)
        elif kind in ("int_value", "double_value"):
            number = self._number(getattr(value, kind))
            if isinstance(number, str):
                value.string_value = number

    def body(self, value: AnyValue, path: str) -> None:
        """Redact a value that is not an attribute. Raises `DroppedError`."""
        action = self._keys.of(path)
        if action is None:
            self.value(value, path)
        elif action != "keep":
            value.CopyFrom(AnyValue(string_value=self._replacement(_content(value), action)))

    def _parsed(
        self,
        text: str,
        value: Any,
        encode: Callable[[Any], str],
        path: str,
        *,
        identity: bool,
        level: int,
    ) -> str:
        """Redact text whose value has been parsed; `encode` writes the text again."""
        before = self.counts.total()
        redacted = self._json(value, path, identity, level + 1)
        unchanged = self.counts.total() == before
        if unchanged and not self._replacements.finds(text):
            return text
        written = encode(redacted)
        if len(written) > MAX_GROWTH * len(text):
            action: Action = "hash" if identity else "mask"
            return self._replacement(text.encode(errors="surrogatepass"), action)
        if not unchanged:
            return written
        # Parsing may hide findings, such as the first of two members with the same key.
        if self._replacements.found(text) <= self._replacements.found(written):
            return text
        return written

    def _unparsed(self, text: str, path: str, *, identity: bool, level: int) -> str:
        """Redact text that is not JSON as a whole but has a key that a rule may match. The whole
        text is masked if no object in it can be parsed.
        """
        value, levels, encode = leniently_parsed(text)
        if levels and level + levels <= MAX_LEVELS:
            return self._parsed(text, value, encode, path, identity=identity, level=level)
        lines = text.split("\n")
        if len(lines) > 1 and all(not line.strip() or parsed(line)[1] for line in lines):
            redacted_lines = [
                self.text(line, path, identity=identity, level=level) for line in lines
            ]
            return "\n".join(redacted_lines)
        start, stop = text.find("{"), text.rfind("}") + 1
        head, inner, tail = text[:start], text[start:stop], text[stop:]
        if 0 <= start < stop and inner != text and self._is_only_object(path, head, inner, tail):
            redacted = self.text(inner, path, identity=identity, level=level)
            return (
                self._plain.redacted(head, identity=identity)
                + redacted
                + self._plain.redacted(tail, identity=identity)
            )
        return self._replacement(text.encode(errors="surrogatepass"), "mask")

    def _is_only_object(self, path: str, head: str, inner: str, tail: str) -> bool:
        """Whether `inner` is an object and the text around it has no key that a rule may match."""
        if self._keys.may_find(path, head) or self._keys.may_find(path, tail):
            return False
        return bool(parsed(inner)[1] or leniently_parsed(inner)[1])

    def _pair(self, pair: KeyValue, path: str) -> None:
        key = path_below(path, pair.key) if path else pair.key
        if key == REDACTED_KEY:
            pair.value.CopyFrom(AnyValue(bool_value=True))
            return
        action = self._keys.of(key)
        name = self._plain.name(pair.key)
        if name != pair.key:
            pair.key = name
        if action == "keep":
            return
        if action is not None:
            pair.value.CopyFrom(
                AnyValue(string_value=self._replacement(_content(pair.value), action))
            )
            return
        if path or not self._is_name(key, pair.value):
            self.value(
                pair.value,
                key,
                identity=key in self._ids or (bool(path) and pair.key in CALL_IDS),
            )

    def _is_name(self, key: str, value: AnyValue) -> bool:
        """Whether an attribute is a name that scoring compares. Objects are not, and neither is
        text with an object that a rule may match.
        """
        if key not in self._names or has_members(value):
            return False
        if value.WhichOneof("value") != "string_value":
            return True
        return not self._keys.may_find(key, value.string_value)

    def _replacement(self, content: bytes, action: Action) -> str:
        """The replacement of a whole value by the action of a rule. Raises `DroppedError`."""
        replacement = MASKED if action == "mask" else self._replacements.hashed(content)
        if action == "drop" or content != replacement.encode():
            self.counts["attribute", action] += 1
        if action == "drop":
            raise DroppedError
        return replacement

    def _items(self, items: Repeated[AnyValue], path: str, identity: bool) -> None:
        for index in reversed(range(len(items))):
            try:
                self.value(items[index], path, identity=identity)
            except DroppedError:
                del items[index]

    def _bytes(self, data: bytes, path: str, identity: bool) -> bytes:
        """Redact bytes. Those that are not UTF-8 are searched as Latin-1."""
        try:
            text, encoding = data.decode(), "utf-8"
        except UnicodeDecodeError:
            text, encoding = data.decode("latin-1"), "latin-1"
        return self.text(text, path, identity=identity).encode(encoding, errors="replace")

    def _json(self, value: Any, path: str, identity: bool, level: int) -> Any:
        if isinstance(value, str):
            return self.text(value, path, identity=identity, level=level)
        if isinstance(value, dict):
            return self._members(value, path, level)
        if isinstance(value, list):
            return self._elements(value, path, identity, level)
        if isinstance(value, tuple | set):
            return type(value)(self._elements(value, path, identity, level))
        if isinstance(value, bytes):
            return self._bytes(value, path, identity)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value)
        return value

    def _members(self, members: dict[Any, Any], path: str, level: int) -> dict[Any, Any]:
        kept = {}
        for name, value in members.items():
            key = path_below(path, name)
            action = self._keys.of(key)
            try:
                written = self._key(name, key, level)
                if action == "keep":
                    kept[written] = value
                elif action is not None:
                    kept[written] = self._replacement(_json_content(value), action)
                else:
                    kept[written] = self._json(value, key, name in CALL_IDS, level + 1)
            except DroppedError:
                continue
        return kept

    def _key(self, name: Any, path: str, level: int) -> Any:
        """The redacted key of a member, which in a Python `repr` may be any value."""
        if isinstance(name, str):
            return self._plain.name(name)
        return self._json(name, path, True, level + 1)

    def _elements(
        self, elements: Iterable[Any], path: str, identity: bool, level: int
    ) -> list[Any]:
        kept = []
        for element in elements:
            try:
                kept.append(self._json(element, path, identity, level + 1))
            except DroppedError:
                continue
        return kept

    def _number(self, number: float) -> float | str:
        if number < _SMALLEST_CARD:
            return number
        redacted = self._replacements.number(number, self.counts)
        if redacted is None:
            raise DroppedError
        return redacted


def has_members(value: AnyValue) -> bool:
    """Whether a value is an object, or a list that contains one."""
    kind = value.WhichOneof("value")
    return kind == "kvlist_value" or (
        kind == "array_value" and any(map(has_members, value.array_value.values))
    )


def _content(value: AnyValue) -> bytes:
    """The bytes to hash: text unchanged, so that an attribute and a JSON member with the same text
    have the same hash.
    """
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value.encode()
    if kind == "bytes_value":
        return value.bytes_value
    return value.SerializeToString(deterministic=True)


def _json_content(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    try:
        return orjson.dumps(value)
    except TypeError:
        return repr(value).encode()

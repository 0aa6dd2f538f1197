"""Redacts values wherever they are nested: attributes, lists, objects, JSON inside of text, and
JSON inside of that.

A member of an object has a path for its key, `gen_ai.tool.call.arguments.card.number`; the places
in lists are left out of it.
"""

from __future__ import annotations

import json
import re
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
from pathgauge.collector.core.redaction.replace import MASKED, RedactionCounts, Replacements
from pathgauge.collector.core.redaction.rules import Action, KeyActions, path_below

CALL_IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId"})
"""Members of messages that tell one call from another."""

_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_MAX_LITERALS = 8
"""JSON strings inside of each other that are looked into where text is no JSON as a whole: each is
searched again, and written with twice as many escapes.
"""
_MAX_GROWTH = 16
"""Times the characters of a text. What is written again has escapes where there were shorter ones,
and each level doubles them.
"""
_SMALLEST_CARD = 10**12


class DroppedError(Exception):
    """A value is not to stay."""


class Values:
    """Redacts the values of one export request in place, and keeps the tally."""

    def __init__(
        self,
        keys: KeyActions,
        replacements: Replacements,
        names: Collection[str],
        identities: Collection[str],
        counts: RedactionCounts,
    ) -> None:
        """`names` are the keys whose values no detector touches, `identities` those whose values
        must stay different from each other.
        """
        self._keys = keys
        self._replacements = replacements
        self._names = names
        self._identities = identities
        self.counts = counts

    def pairs(self, pairs: Repeated[KeyValue], path: str = "") -> None:
        """Attributes, or the members of an object at `path`."""
        for index in reversed(range(len(pairs))):
            try:
                self._pair(pairs[index], path)
            except DroppedError:
                del pairs[index]

    def text(self, text: str, path: str, *, identity: bool = False, level: int = 0) -> str:
        """Text, of whatever it may be the encoding. Raises `DroppedError`."""
        if not text or not (self._suspicious(text) or self._keys.reach_into(path)):
            return text
        value, levels = parsed(text)
        if levels and level + levels <= MAX_LEVELS:
            return self._parsed(text, value, encoded, path, identity=identity, level=level)
        if self._keys.may_find(path, text):
            return self._unparsed(text, path, identity=identity, level=level)
        head, newline, rest = text.partition("\n")
        if newline and not levels and parsed(rest)[1]:
            return (
                self._plain(head, identity)
                + newline
                + self.text(rest, path, identity=identity, level=level)
            )
        return self._plain(text, identity)

    def field(self, text: str, path: str) -> str:
        """Text of a field that is no attribute; nothing is left where it is to be dropped."""
        action = self._keys.of(path)
        if not text or action == "keep":
            return text
        try:
            return self.text(text, path) if action is None else self._instead(text.encode(), action)
        except DroppedError:
            return ""

    def value(self, value: AnyValue, path: str, *, identity: bool = False) -> None:
        """An OTLP value of whatever kind. Raises `DroppedError`."""
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
        """A value that is no attribute's. Raises `DroppedError`."""
        action = self._keys.of(path)
        if action is None:
            self.value(value, path)
        elif action != "keep":
            value.CopyFrom(AnyValue(string_value=self._instead(_content(value), action)))

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
        """Text whose value is known, and how it is written."""
        before = self.counts.total()
        redacted = self._json(value, path, identity, level + 1)
        unchanged = self.counts.total() == before
        if unchanged and not self._replacements.finds(text):
            return text
        written = encode(redacted)
        if len(written) > _MAX_GROWTH * len(text):
            return self._instead(
                text.encode(errors="surrogatepass"), "hash" if identity else "mask"
            )
        # The text may hold what parsing hides, such as the first of two members with the same key.
        return (
            text
            if unchanged and self._replacements.found(text) <= self._replacements.found(written)
            else written
        )

    def _unparsed(self, text: str, path: str, *, identity: bool, level: int) -> str:
        """Text that is no JSON as a whole, and holds something for a rule for keys. Masked where no
        object in it can be read.
        """
        value, levels, encode = leniently_parsed(text)
        if levels and level + levels <= MAX_LEVELS:
            return self._parsed(text, value, encode, path, identity=identity, level=level)
        lines = text.split("\n")
        if len(lines) > 1 and all(not line.strip() or parsed(line)[1] for line in lines):
            return "\n".join(
                self.text(line, path, identity=identity, level=level) for line in lines
            )
        start, stop = text.find("{"), text.rfind("}") + 1
        head, inner, tail = text[:start], text[start:stop], text[stop:]
        around = self._keys.may_find(path, head) or self._keys.may_find(path, tail)
        if (
            0 <= start < stop
            and inner != text
            and not around
            and (parsed(inner)[1] or leniently_parsed(inner)[1])
        ):
            redacted = self.text(inner, path, identity=identity, level=level)
            return self._plain(head, identity) + redacted + self._plain(tail, identity)
        return self._instead(text.encode(errors="surrogatepass"), "mask")

    def _pair(self, pair: KeyValue, path: str) -> None:
        key = path_below(path, pair.key) if path else pair.key
        if key == REDACTED_KEY:
            pair.value.CopyFrom(AnyValue(bool_value=True))
            return
        action = self._keys.of(key)
        if action == "keep":
            return
        if action is not None:
            pair.value.CopyFrom(AnyValue(string_value=self._instead(_content(pair.value), action)))
            return
        named = self._name(pair.key)
        if named != pair.key:
            pair.key = named
        if path or not self._is_name(key, pair.value):
            self.value(
                pair.value,
                key,
                identity=key in self._identities or (bool(path) and pair.key in CALL_IDS),
            )

    def _is_name(self, key: str, value: AnyValue) -> bool:
        """Whether an attribute is one by which scoring compares. An object is none, nor is text
        with one in which a rule may match.
        """
        if key not in self._names or has_members(value):
            return False
        return value.WhichOneof("value") != "string_value" or not self._keys.may_find(
            key, value.string_value
        )

    def _instead(self, content: bytes, action: Action) -> str:
        """What a rule for keys puts in the place of a value. Raises `DroppedError`."""
        stands_for = MASKED if action == "mask" else self._replacements.hashed(content)
        if action == "drop" or content != stands_for.encode():
            self.counts["attribute", action] += 1
        if action == "drop":
            raise DroppedError
        return stands_for

    def _items(self, items: Repeated[AnyValue], path: str, identity: bool) -> None:
        for index in reversed(range(len(items))):
            try:
                self.value(items[index], path, identity=identity)
            except DroppedError:
                del items[index]

    def _bytes(self, data: bytes, path: str, identity: bool) -> bytes:
        """Bytes that are no text are searched as if each were a character."""
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
        return (
            value
            if isinstance(value, bool) or not isinstance(value, int | float)
            else self._number(value)
        )

    def _members(self, members: dict[Any, Any], path: str, level: int) -> dict[Any, Any]:
        kept = {}
        for name, value in members.items():
            key = path_below(path, name)
            action = self._keys.of(key)
            try:
                if action == "keep":
                    kept[name] = value
                elif action is not None:
                    kept[name] = self._instead(_json_content(value), action)
                else:
                    named = (
                        self._name(name)
                        if isinstance(name, str)
                        else self._json(name, key, True, level + 1)
                    )
                    kept[named] = self._json(value, key, name in CALL_IDS, level + 1)
            except DroppedError:
                continue
        return kept

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

    def _name(self, name: str) -> str:
        """The key of a member. Masked, many might become one, of which only the last is read."""
        return self._plain(name, True) if self._suspicious(name) else name

    def _plain(self, text: str, identity: bool, literals: int = 0) -> str:
        """Text that is no JSON as a whole, inside of so many literals; JSON strings in it may hide
        something behind escapes.
        """
        redacted = self._replacements.text(text, self.counts, identity=identity)
        if redacted is None:
            raise DroppedError
        if "\\" in redacted and '"' in redacted:
            redacted = _LITERAL.sub(
                lambda match: self._literal(match[0], identity, literals + 1), redacted
            )
        return redacted

    def _literal(self, literal: str, identity: bool, literals: int) -> str:
        if "\\" not in literal:
            return literal
        try:
            text = json.loads(
                literal if literal.endswith('"') and len(literal) > 1 else literal + '"',
                strict=False,
            )
        except ValueError:
            return literal
        if literals <= _MAX_LITERALS:
            redacted = self._plain(text, identity, literals)
            written = literal if redacted == text else json.dumps(redacted)
            if len(written) <= _MAX_GROWTH * len(literal):
                return written
        self.counts["unreadable", "drop"] += 1
        return f'"{MASKED}"'

    def _suspicious(self, text: str) -> bool:
        """Whether a text has to be looked into: the detectors know single escapes, but not
        characters by number and escaped escapes.
        """
        return "\\u" in text or "\\/" in text or "\\\\" in text or self._replacements.finds(text)


def has_members(value: AnyValue) -> bool:
    """Whether a value is an object, or a list with one in it."""
    kind = value.WhichOneof("value")
    return kind == "kvlist_value" or (
        kind == "array_value" and any(map(has_members, value.array_value.values))
    )


def _content(value: AnyValue) -> bytes:
    """What a hash is taken of: the text as it is, so that it hashes alike as an attribute and as a
    member of JSON.
    """
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value.encode()
    return (
        value.bytes_value if kind == "bytes_value" else value.SerializeToString(deterministic=True)
    )


def _json_content(value: Any) -> bytes:
    try:
        return (
            value.encode(errors="surrogatepass") if isinstance(value, str) else orjson.dumps(value)
        )
    except TypeError:
        return repr(value).encode()

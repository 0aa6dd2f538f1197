"""The redaction rules of a tenant, and the action for a key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Literal

Action = Literal["keep", "mask", "hash", "drop"]
"""What happens to a value: it is kept, replaced by a placeholder or a salted hash, or removed."""

DetectorName = Literal["token", "email", "card", "phone"]
"""What a detector recognises by its form, in any text."""

MASK_ALL: Mapping[str, Action] = {"token": "mask", "email": "mask", "card": "mask", "phone": "mask"}

_WILDCARD = re.compile(r"[*?[]")

_DELIMITER = re.compile(r"[*?\].]")
_ESCAPE = re.compile(r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")

_MAX_KEYS = 4096
"""Cache limit: senders can invent any number of keys."""
_MAX_CACHED_CHARACTERS = 256
"""Longer keys are not cached."""
_MAX_PATH_CHARACTERS = 4096
"""Longer paths are not compared with patterns, which would be slow for all members below them."""


@dataclass(frozen=True, slots=True)
class KeyRule:
    """An action for the values of all keys that a glob pattern matches."""

    match: str
    action: Action


@dataclass(frozen=True, slots=True)
class Rules:
    """The redaction rules of one tenant."""

    attributes: tuple[KeyRule, ...] = ()
    """The first rule that matches a key decides, and detectors skip its value."""
    detectors: Mapping[str, Action] = field(default_factory=lambda: MASK_ALL)
    """By `DetectorName`. Detectors without an action are off."""
    content: bool = True
    """Whether messages, arguments, results and answers are kept."""


class KeyActions:
    """The key rules of one tenant, compiled."""

    def __init__(self, rules: tuple[KeyRule, ...]) -> None:
        self._rules = [(re.compile(translate(rule.match)), rule.action) for rule in rules]
        self._literal_starts = [_WILDCARD.split(rule.match)[0] for rule in rules]
        self._last_keys = [_last_key(rule.match) for rule in rules]
        self._known: dict[str, Action | None] = {}

    def of(self, key: str) -> Action | None:
        """The action of the first rule that matches, or `None`. Values whose path is too long to be
        compared are dropped.
        """
        if not self._rules:
            return None
        if len(key) > _MAX_PATH_CHARACTERS:
            return "drop"
        if len(key) > _MAX_CACHED_CHARACTERS:
            return self._find(key)
        try:
            return self._known[key]
        except KeyError:
            if len(self._known) >= _MAX_KEYS:
                self._known.clear()
            return self._known.setdefault(key, self._find(key))

    def _find(self, key: str) -> Action | None:
        return next((action for pattern, action in self._rules if pattern.match(key)), None)

    def reach_into(self, key: str) -> bool:
        """Whether a rule may match a member of the value at `key`."""
        return any(_may_match_below(key, start) for start in self._literal_starts)

    def may_find(self, key: str, text: str) -> bool:
        """Whether a rule may match a member of an object in the text at `key`, in any notation."""
        if not self._rules or not ("{" in text or "}" in text):
            return False
        rules = zip(self._rules, self._literal_starts, self._last_keys, strict=True)
        last_keys = [
            last_key
            for (_, action), start, last_key in rules
            if action != "keep" and _may_match_below(key, start)
        ]
        if not last_keys:
            return False
        if "\\" in text:
            text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
        return any(last_key.search(text) for last_key in last_keys)


def path_below(path: str, name: object) -> str:
    """The path of a member. A parent path that is too long to be compared is truncated."""
    return f"{path[:_MAX_PATH_CHARACTERS]}.{name}"


def _may_match_below(key: str, literal_start: str) -> bool:
    inside = f"{key}."
    return literal_start.startswith(inside) or inside.startswith(literal_start)


def _last_key(pattern: str) -> re.Pattern[str]:
    """Finds text that may be the last key of a path that the glob pattern matches."""
    delimiters = [match.end() for match in _DELIMITER.finditer(pattern)]
    at = delimiters[-1] if delimiters else 0
    name = re.escape(pattern[at:])
    start = r"(?<!\w)" if pattern[at - 1 : at] in ("", ".") else ""
    return re.compile(rf"{start}{name}[\"'`\\\s]*+[:=]" if name else "[:=]")

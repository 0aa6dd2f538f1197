"""What is to be redacted: a tenant's rules, and the key of a value in; the action for it out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Literal

Action = Literal["keep", "mask", "hash", "drop"]
"""What becomes of a value: it stays, a placeholder or a salted hash takes its place, or it is
removed.
"""

DetectorName = Literal["token", "email", "card", "phone"]
"""What is found by its form, wherever it stands."""

MASK_ALL: Mapping[str, Action] = {"token": "mask", "email": "mask", "card": "mask", "phone": "mask"}

_WILDCARD = re.compile(r"[*?[]")

_DELIMITER = re.compile(r"[*?\].]")
_ESCAPE = re.compile(r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")

_MAX_KEYS = 4096
"""Kept in mind at a time; senders may invent as many as they like."""
_LONGEST_KEPT = 256
"""Characters of a key that is kept in mind."""
_LONGEST_PATH = 4096
"""Characters of a path that is compared with patterns: every member below it is looked up by all of
them.
"""


@dataclass(frozen=True, slots=True)
class KeyRule:
    """An action for the values of all keys that a glob pattern matches."""

    match: str
    action: Action


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for the telemetry of one tenant."""

    attributes: tuple[KeyRule, ...] = ()
    """The first that matches a key decides, and no detector looks at its value."""
    detectors: Mapping[str, Action] = field(default_factory=lambda: MASK_ALL)
    """By `DetectorName`; one that is left out finds nothing."""
    content: bool = True
    """Whether messages, arguments, results and answers are kept at all."""


class KeyActions:
    """The key rules of one tenant, made ready."""

    def __init__(self, rules: tuple[KeyRule, ...]) -> None:
        self._rules = [(re.compile(translate(rule.match)), rule.action) for rule in rules]
        self._beginnings = [_WILDCARD.split(rule.match)[0] for rule in rules]
        self._endings = [_ending(rule.match) for rule in rules]
        self._known: dict[str, Action | None] = {}

    def of(self, key: str) -> Action | None:
        """The action of the first rule that matches; `None` where none does. What is too long to be
        compared is dropped.
        """
        if not self._rules:
            return None
        if len(key) > _LONGEST_KEPT:
            return self._found(key) if len(key) <= _LONGEST_PATH else "drop"
        try:
            return self._known[key]
        except KeyError:
            if len(self._known) >= _MAX_KEYS:
                self._known.clear()
            return self._known.setdefault(key, self._found(key))

    def _found(self, key: str) -> Action | None:
        return next((action for pattern, action in self._rules if pattern.match(key)), None)

    def reach_into(self, key: str) -> bool:
        """Whether a rule may match a member of the value, whose key goes on from there."""
        return any(_may_match_below(key, beginning) for beginning in self._beginnings)

    def may_find(self, key: str, text: str) -> bool:
        """Whether a rule may match a member of an object in the text, which is below `key`, however
        the object is written.
        """
        if not self._rules or not ("{" in text or "}" in text):
            return False
        endings = [
            ending
            for (_, action), beginning, ending in zip(
                self._rules, self._beginnings, self._endings, strict=True
            )
            if action != "keep" and _may_match_below(key, beginning)
        ]
        if not endings:
            return False
        plain = (
            _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
            if "\\" in text
            else text
        )
        return any(ending.search(plain) for ending in endings)


def path_below(path: str, name: object) -> str:
    """The path of a member; what is above it is cut off where it is too long to be compared."""
    return f"{path[:_LONGEST_PATH]}.{name}"


def _may_match_below(key: str, beginning: str) -> bool:
    inside = f"{key}."
    return beginning.startswith(inside) or inside.startswith(beginning)


def _ending(pattern: str) -> re.Pattern[str]:
    """Finds in text what may be the last key of a path that the glob pattern matches."""
    delimiters = [match.end() for match in _DELIMITER.finditer(pattern)]
    at = delimiters[-1] if delimiters else 0
    name = re.escape(pattern[at:])
    start = r"(?<!\w)" if pattern[at - 1 : at] in ("", ".") else ""
    return re.compile(rf"{start}{name}[\"'`\\\s]*+[:=]" if name else "[:=]")

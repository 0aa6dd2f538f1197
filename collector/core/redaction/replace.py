"""Takes what the detectors find out of text: text in; text with placeholders or hashes in its
place, or nothing at all, out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping

from pathgauge.collector.core.redaction.detectors import DETECTORS, SHORTEST, Detector, is_card
from pathgauge.collector.core.redaction.rules import Action

RedactionCounts = Counter[tuple[str, str]]
"""How many values were redacted, by what decided it (a detector, `attribute` or `content`) and by
action.
"""

MASKED = "[REDACTED]"
"""Stands for a whole value. The reading knows it for content that was removed on purpose."""

_HASH_BYTES = 8
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
"""Digits in a hash might look like a number that is to be redacted."""

_HASHED = "[hash:"

_MAX_ROUNDS = 5
"""Searches of one text. What is taken out may let its neighbour be found, so that a long chain of
them would need as many.
"""

_SHORT = 64
_MAX_SHORT = 8192


class Replacements:
    """The detectors of one tenant with their actions, and the key of the hashes."""

    def __init__(self, actions: Mapping[str, Action], salt: bytes) -> None:
        self._salt = salt
        self._harmless: set[str] = set()
        self._active: tuple[tuple[Detector, Action], ...] = tuple(
            (detector, actions[detector.name])
            for detector in DETECTORS
            if actions.get(detector.name, "keep") != "keep"
        )

    def __bool__(self) -> bool:
        return bool(self._active)

    def finds(self, text: str) -> bool:
        """Whether there is anything to take out of the text. Short texts without are kept in mind,
        as they come again and again.
        """
        if len(text) < SHORTEST or text in self._harmless:
            return False
        for detector, _ in self._active:
            if detector.find(text):
                return True
        if len(text) <= _SHORT:
            if len(self._harmless) >= _MAX_SHORT:
                self._harmless.clear()
            self._harmless.add(text)
        return False

    def found(self, text: str) -> set[str]:
        """All that is to be taken out of the text."""
        return {
            text[start:end] for detector, _ in self._active for start, end in detector.find(text)
        }

    def text(self, text: str, counts: RedactionCounts, *, identity: bool = False) -> str | None:
        """The text without what was found in it; `None` when it is to be dropped.

        With `identity` the text tells one thing from another: masked, many would become one, so a
        hash stands in for a mask. Of a text in which there is more to find after every round
        nothing is left.
        """
        whole = text
        for _ in range(
            _MAX_ROUNDS
            # until nothing is found, so that what has been redacted stays as it is when it comes again
        ):
            before = text
            for detector, action in self._active:
                found = detector.find(text)
                if found and action == "drop":
                    counts[detector.name, action] += 1
                    return None
                if found:
                    done: Action = "hash" if identity else action
                    counts[detector.name, done] += len(found)
                    text = self._without(text, found, detector.name, done)
            if text == before:
                return text
        return self.hashed(whole.encode(errors="surrogatepass")) if identity else MASKED

    def number(self, number: float, counts: RedactionCounts) -> float | str | None:
        """A number as it is, or what stands for the payment card whose number it is; `None` when it
        is to be dropped.
        """
        action = next(
            (action for detector, action in self._active if detector.name == "card"), None
        )
        if action is None or not is_card(number):
            return number
        return self.text(str(int(number)), counts)

    def hashed(self, data: bytes) -> str:
        """What stands for a whole value that is hashed; a hash stays itself."""
        text = data.decode(errors="replace")
        if (
            text.startswith(_HASHED)
            and text.endswith("]")
            and len(text) == len(_HASHED) + 2 * _HASH_BYTES + 1
        ):
            return text
        return f"{_HASHED}{self._digest(data)}]"

    def _without(self, text: str, found: list[tuple[int, int]], name: str, action: Action) -> str:
        parts, at = [], 0
        for start, end in found:
            label = (
                name
                if action == "mask"
                else f"{name}:{self._digest(text[start:end].encode(errors='surrogatepass'))}"
            )
            parts += [text[at:start], f"[{label}]"]
            at = end
        return "".join([*parts, text[at:]])

    def _digest(self, data: bytes) -> str:
        return (
            hmac.new(self._salt, data, hashlib.sha256)
            .hexdigest()[: 2 * _HASH_BYTES]
            .translate(_LETTERS)
        )

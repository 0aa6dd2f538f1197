"""Replaces what the detectors find in text by placeholders or hashes."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping

from pathgauge.collector.core.redaction.detectors import (
    DETECTORS,
    MIN_CHARACTERS,
    Detector,
    is_card,
)
from pathgauge.collector.core.redaction.rules import Action

RedactionCounts = Counter[tuple[str, str]]
"""The number of redacted values by rule (a detector, `attribute`, `content` or `unreadable`) and
action.
"""

MASKED = "[REDACTED]"
"""Replaces a whole value. The reader recognises it as content that was removed on purpose."""

_HASH_BYTES = 8
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
"""Hashes are written in letters, because digits could look like a card or telephone number."""

_HASHED = "[hash:"

_MAX_ROUNDS = 5
"""Bound on the searches of one text. Redacting one finding can expose its neighbour, so a long
chain of them would need as many searches.
"""

_MAX_CACHED_CHARACTERS = 64
_MAX_CACHED = 8192


class Replacements:
    """The detectors of one tenant with their actions, and the salt of the hashes."""

    def __init__(self, actions: Mapping[str, Action], salt: bytes) -> None:
        self._salt = salt
        self._clean: set[str] = set()
        """Cache of short texts without findings, because they repeat often."""
        self._active: tuple[tuple[Detector, Action], ...] = tuple(
            (detector, actions[detector.name])
            for detector in DETECTORS
            if actions.get(detector.name, "keep") != "keep"
        )

    def __bool__(self) -> bool:
        return bool(self._active)

    def finds(self, text: str) -> bool:
        """Whether a detector finds something in the text."""
        if len(text) < MIN_CHARACTERS or text in self._clean:
            return False
        for detector, _ in self._active:
            if detector.find(text):
                return True
        if len(text) <= _MAX_CACHED_CHARACTERS:
            if len(self._clean) >= _MAX_CACHED:
                self._clean.clear()
            self._clean.add(text)
        return False

    def found(self, text: str) -> set[str]:
        """All findings in the text."""
        return {
            text[start:end] for detector, _ in self._active for start, end in detector.find(text)
        }

    def text(self, text: str, counts: RedactionCounts, *, identity: bool = False) -> str | None:
        """The text with its findings replaced; `None` if it must be dropped.

        With `identity` the text is an id: findings are hashed instead of masked, because masking
        would make different ids equal. A text that still has findings after all rounds is replaced
        as a whole.
        """
        whole = text
        # Repeating until nothing is found makes redaction idempotent.
        for _ in range(_MAX_ROUNDS):
            before = text
            for detector, action in self._active:
                found = detector.find(text)
                if not found:
                    continue
                if action == "drop":
                    counts[detector.name, action] += 1
                    return None
                applied: Action = "hash" if identity else action
                counts[detector.name, applied] += len(found)
                text = self._replaced(text, found, detector.name, applied)
            if text == before:
                return text
        if identity:
            return self.hashed(whole.encode(errors="surrogatepass"))
        return MASKED

    def number(self, number: float, counts: RedactionCounts) -> float | str | None:
        """The number, or the replacement of a payment card number; `None` if it must be dropped."""
        if not any(detector.name == "card" for detector, _ in self._active) or not is_card(number):
            return number
        return self.text(str(int(number)), counts)

    def hashed(self, data: bytes) -> str:
        """The hash of a whole value. A hash stays unchanged."""
        text = data.decode(errors="replace")
        if _is_hashed(text):
            return text
        return f"{_HASHED}{self._hash(data)}]"

    def _replaced(self, text: str, found: list[tuple[int, int]], name: str, action: Action) -> str:
        parts, at = [], 0
        for start, end in found:
            label = name
            if action != "mask":
                label = f"{name}:{self._hash(text[start:end].encode(errors='surrogatepass'))}"
            parts += [text[at:start], f"[{label}]"]
            at = end
        return "".join([*parts, text[at:]])

    def _hash(self, data: bytes) -> str:
        hexadecimal = hmac.new(self._salt, data, hashlib.sha256).hexdigest()
        return hexadecimal[: 2 * _HASH_BYTES].translate(_LETTERS)


def _is_hashed(text: str) -> bool:
    if len(text) != len(_HASHED) + 2 * _HASH_BYTES + 1:
        return False
    return text.startswith(_HASHED) and text.endswith("]")

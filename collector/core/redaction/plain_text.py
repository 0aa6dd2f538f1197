"""Redacts text that is not JSON as a whole, and the JSON strings inside it.

Escapes of JSON could hide a finding. Detectors understand single escapes, so strings with others
are read, redacted, and written again.
"""

from __future__ import annotations

import json
import re

from pathgauge.collector.core.redaction.replace import MASKED, RedactionCounts, Replacements

MAX_GROWTH = 16
"""Bound on the length of encoded text, as a multiple of the original: encoding may use longer
escapes, and each level doubles them.
"""
_LITERAL = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?', re.DOTALL)
_MAX_LITERALS = 8
"""Bound on nested JSON strings: each level is searched again and doubles the escapes."""


class DroppedError(Exception):
    """A value must be removed."""


class PlainText:
    """Redacts such text, and counts it."""

    def __init__(self, replacements: Replacements, counts: RedactionCounts) -> None:
        self._replacements = replacements
        self._counts = counts

    def needs_redaction(self, text: str) -> bool:
        """Whether something is found in it, or may be hidden by numeric or escaped escapes."""
        return "\\u" in text or "\\/" in text or "\\\\" in text or self._replacements.finds(text)

    def name(self, name: str) -> str:
        """The redacted key of a member. Hashed, because masking could make keys equal. Raises
        `DroppedError`.
        """
        return self.redacted(name, identity=True) if self.needs_redaction(name) else name

    def redacted(self, text: str, *, identity: bool) -> str:
        """The redacted text. With `identity`, different texts stay different. Raises
        `DroppedError`.
        """
        return self._within(text, identity, 0)

    def _within(self, text: str, identity: bool, literals: int) -> str:
        """Redact text inside of `literals` levels of JSON strings."""
        redacted = self._replacements.text(text, self._counts, identity=identity)
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
            redacted = self._within(text, identity, literals)
            written = literal if redacted == text else json.dumps(redacted)
            if len(written) <= MAX_GROWTH * len(literal):
                return written
        self._counts["unreadable", "drop"] += 1
        return f'"{MASKED}"'

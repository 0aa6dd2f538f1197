"""The signature of a failure: one short line, equal for runs that fail in the same way.

Names of tools and arguments come from the agent and may be any text.
"""

from __future__ import annotations

from collections.abc import Iterable

from pathgauge.scorers.matching.wording import cut, one_line

MAX_SIGNATURE = 200
"""Characters of a signature."""
MAX_NAME = 60
"""Characters of one name in it."""


def signature(parts: Iterable[str]) -> str:
    """The different parts on one line of at most `MAX_SIGNATURE` characters, the first ones if
    there are too many.
    """
    distinct = list(dict.fromkeys(parts))
    text = "; ".join(distinct)
    shown = len(distinct)
    while len(text) > MAX_SIGNATURE:
        shown = min(shown - 1, MAX_SIGNATURE)  # no part is empty
        text = "; ".join([*distinct[:shown], f"{len(distinct) - shown} more"])
    return text


def short_name(name: str) -> str:
    """A name without line breaks and invisible characters, of at most `MAX_NAME` characters."""
    text = cut(one_line(name[: 2 * MAX_NAME]), MAX_NAME)
    return "".join(character if character.isprintable() else "?" for character in text)

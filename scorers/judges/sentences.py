"""Splits text into sentences. Only whitespace and punctuation without any word are dropped.

Each list item is a sentence; so is a whole table or code block. Abbreviations, numbers and initials
do not end a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(r"""(?:(?<![.!?…])[.!?…]++["'”’»)\]*_]*+(?=\s)|[。！？｡।॥؟۔።။]+["'”’」』）]*)""")
_NEAR = 40
"""Characters to examine on each side of a full stop."""
_OPENING = "([*_\"'“‘«"
_BULLETS = " \t*-•#>"
_ABBREVIATIONS = frozenset(
    {
        "approx",
        "ca",
        "cf",
        "dr",
        "e.g",
        "fig",
        "i.e",
        "mr",
        "mrs",
        "ms",
        "nos",
        "nr",
        "pp",
        "prof",
        "st",
        "vol",
        "vs",
    }
)
_NUMBERED = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]?\Z")
_WORD = re.compile(r"\w")


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [
        sentence for block in _blocks(text) for sentence in _split(block) if _WORD.search(sentence)
    ]


def _blocks(text: str) -> Iterator[str]:
    """The lines of a text; the lines of a table or code block are one block."""
    together: list[str] = []
    in_code = False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        if in_code or fence or line.lstrip().startswith("|"):
            together.append(line)
            in_code ^= fence
            continue
        if together:
            yield "\n".join(together)
            together = []
        yield line
    if together:
        yield "\n".join(together)


def _split(block: str) -> Iterator[str]:
    if "\n" in block or block.lstrip().startswith(("|", "```")):
        yield block.strip()
        return
    begin = 0
    for end in _END.finditer(block):
        if _ends(block, begin, end):
            yield block[begin : end.end()].strip()
            begin = end.end()
    yield block[begin:].strip()


def _ends(block: str, begin: int, end: re.Match[str]) -> bool:
    """Whether a sentence ends here.

    A full stop does not end one after an abbreviation or a list number, or before a lower-case
    letter.
    """
    if not end.group().startswith(".") or end.group().startswith(".."):
        return True
    before = block[max(begin, end.start() - _NEAR) : end.start()]
    words = before.split()
    word = words[-1].lstrip(_OPENING) if words else ""
    if word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "I"):
        return False
    if end.start() - begin < _NEAR and (
        _NUMBERED.match(before.strip(_BULLETS)) or not before.strip(_BULLETS)
    ):
        return False
    return not block[end.end() : end.end() + _NEAR].lstrip()[:1].islower()

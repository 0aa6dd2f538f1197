"""Recognises how texts are built, and writes the tightest pattern that accepts all of them.

Ids, dates and addresses have a form; names and sentences have none, so all that is known of them is
that they are not blank. Digits are never taken literally: years and counters move on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby

from pathgauge.scorers.matching.patterns import MAX_TEXT
from pathgauge.scorers.matching.value_matchers import Pattern

_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
FIXED: dict[str, str] = {
    "date": _DATE,
    "time": f"{_DATE}[T ]{_TIME}",
    "time of day": _TIME,
    "email": r"[^@\s]+@[^@\s]+\.[^@\s.]+",
    "URL": r"https?://\S+",
    "words": r"\p{L}[\p{L}\p{M} .,;:!?'’&/()-]*",
    "text": r"(?s).*\S.*",
}
"""Forms whose pattern does not depend on the texts, the most special first."""
TEXT = FIXED["text"]
_KNOWN = {name: re.compile(FIXED[name]) for name in ("date", "time", "time of day", "email", "URL")}
_FREE = frozenset({"words", "text"})
_NO_CODES = frozenset({*FIXED, "blank"})
_TOKEN = re.compile(r"[0-9A-Za-z]+")
_ANY = re.compile(r"[0-9A-Za-z]")
_MAX_LENGTHS = 3
"""Different lengths of codes that have a fixed length."""
_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_MAX_CODE = 64
_MAX_TOKENS = 8
_CLASSES = (
    ("0123456789", "[0-9]"),
    ("0123456789abcdef", "[0-9a-f]"),
    ("0123456789ABCDEF", "[0-9A-F]"),
    ("abcdefghijklmnopqrstuvwxyz", "[a-z]"),
    ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "[A-Z]"),
    ("0123456789abcdefghijklmnopqrstuvwxyz", "[0-9a-z]"),
    ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", "[0-9A-Z]"),
)
_ALL_CLASSES = (*_CLASSES, ("", "[0-9A-Za-z]"))
_SUPPORT = 3
"""Texts that must have the greatest length before it is taken for a limit."""


def forms(texts: Sequence[str]) -> list[str]:
    """The form of each text: a name of `FIXED`, `blank`, or the skeleton of a code such as `w-w`,
    where `w` stands for letters and digits.
    """
    found = [_form(text) for text in texts]
    codes = {
        _lengths(text) for text, form in zip(texts, found, strict=True) if form not in _NO_CODES
    }
    if len(codes) > _MAX_LENGTHS:
        return found
    # A code of a fixed length may happen to have no digit.
    return [
        _TOKEN.sub("w", text) if form in _FREE and _lengths(text) in codes else form
        for text, form in zip(texts, found, strict=True)
    ]


def _lengths(text: str) -> str:
    """The text with its letters and digits made equal."""
    return _ANY.sub("w", text)


def _form(text: str) -> str:
    if not text.strip():
        return "blank"
    for name, known in _KNOWN.items():
        if known.fullmatch(text):
            return name
    if _is_code(text):
        return _TOKEN.sub("w", text)
    return "words" if len(text) <= MAX_TEXT and _words().accepts(text) else "text"


@cache
def _words() -> Pattern:
    return Pattern(FIXED["words"])


def _is_code(text: str) -> bool:
    """Whether the text is an identifier: no blanks, and a digit or capitals only."""
    tokens = _TOKEN.findall(text)
    return (
        len(text) <= _MAX_CODE
        and 0 < len(tokens) <= _MAX_TOKENS
        and text.isascii()
        and not any(char.isspace() for char in text)
        and (any(char.isdigit() for char in text) or text.isupper())
    )


def pattern(form: str, texts: Sequence[str]) -> str:
    """The pattern that accepts texts of this form; they all have it."""
    if form == "blank":
        return r"\s*"
    if form in FIXED:
        return FIXED[form]
    columns = list(zip(*(_TOKEN.findall(text) for text in texts), strict=True))
    patterns = iter([_token(column) for column in columns])
    return "".join(next(patterns) if char == "w" else _escaped(char) for char in form)


def traits(form: str, texts: Sequence[str]) -> Iterator[list[str]]:
    """Of codes: for each part, its length, the kinds of its characters, and its letters if they are
    fixed. "" is no deviation: by chance, a part may have no digit.
    """
    if form in FIXED or form == "blank":
        return
    for column in zip(*map(_TOKEN.findall, texts), strict=True):
        yield [str(len(token)) for token in column]
        for has in (str.isdigit, str.isupper, str.islower):
            yield ["has it" if any(map(has, token)) else "" for token in column]
        letters = ["".join(char for char in token if char.isalpha()) for token in column]
        [(_, most)] = Counter(letters).most_common(1)
        if most * 2 > len(letters):
            yield letters


def _escaped(char: str) -> str:
    return f"\\{char}" if char in _SPECIAL else char


def _token(column: Sequence[str]) -> str:
    """The pattern of one part of a code."""
    if len(set(column)) == 1 and column[0].isalpha():
        return column[0]
    parts = [[(key, "".join(run)) for key, run in groupby(token, str.isdigit)] for token in column]
    if len({tuple(key for key, _ in part) for part in parts}) == 1 and len(parts[0]) <= 3:
        pieces = [[run for _, run in piece] for piece in zip(*parts, strict=True)]
        return "".join(map(_run, pieces))
    return _class(column) + _times(column)


def _run(pieces: Sequence[str]) -> str:
    if len(set(pieces)) == 1 and pieces[0].isalpha():
        return pieces[0]
    return _class(pieces) + _times(pieces)


def _class(pieces: Sequence[str]) -> str:
    seen = set("".join(pieces))
    return next(name for chars, name in _ALL_CLASSES if not chars or seen <= set(chars))


def _times(pieces: Sequence[str]) -> str:
    lengths = sorted(map(len, pieces))
    low, high = lengths[0], lengths[-1]
    if low == high:
        return f"{{{low}}}" if low > 1 else ""
    if lengths.count(low) < _SUPPORT:
        low = max(1, low - 1)
    if lengths.count(high) < _SUPPORT or all(piece.isdigit() for piece in pieces):
        high += 1
    return f"{{{low},{high}}}"

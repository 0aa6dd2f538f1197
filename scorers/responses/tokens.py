"""Splits text of any script into tokens, as ADK's ROUGE tokeniser does.

- Text is normalized (NFKC: full and half width, ligatures) and converted to lower case.
- A word is a sequence of letters, digits and combining marks; all other characters separate words.
- In Han, kana and Hangul, each character is a token. In Thai, Lao, Khmer and Myanmar, each base
  character with its marks is one.
- ASCII words of more than three characters may be stemmed, so that `dogs` matches `dog`.

For ASCII text these are the tokens of rouge_score, which finds none in other scripts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from pathgauge.scorers.responses.stemmer import load_stemmer

_SPECIAL = re.compile(
    "(?P<alone>[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])"  # kana, Han, Hangul
    "|(?P<base>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"  # Thai and Lao, Myanmar, Khmer
    r"|[\W_]"
)
_ASCII_WORD = re.compile("[a-z0-9]+")
_MAX_STEMMED_WORD = 32
"""Longer words are identifiers, which have no stem and would fill the cache of stems."""


def tokens(text: str, *, stemmer: bool) -> list[str]:
    """The tokens of `text`, in order."""
    words = _words(text)
    return [_stemmed(word) for word in words] if stemmer else words


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """The number of occurrences of each sequence of `n` words."""
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _SPECIAL.sub(_separated, unicodedata.normalize("NFKC", text).lower()).split()


def _separated(match: re.Match[str]) -> str:
    char = match[0]
    if match.lastgroup == "alone":
        return f" {char} "
    if unicodedata.category(char).startswith("M"):
        return char
    return f" {char}" if match.lastgroup == "base" else " "


def _stemmed(word: str) -> str:
    if not word.isascii() or len(word) > _MAX_STEMMED_WORD:
        return word
    return _stem(word)


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    return "".join(load_stemmer()(word))

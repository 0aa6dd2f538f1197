"""The words of a text in any script: text comes in, comparable tokens go out, the same as in ADK's
ROUGE tokeniser.

- Full and half width, ligatures and the like become one (NFKC), and case is dropped.
- A word is a run of letters, digits and combining marks; everything else separates.
- Han, kana and Hangul: each character is a token. Thai, Lao, Khmer and Myanmar: each base
  character, with its marks.
- ASCII words of more than three characters may be stemmed, so that `dogs` meets `dog`; other words
  stay as they are.

For ASCII text these are the tokens of rouge_score, which has none for any other script.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module

_SPECIAL = re.compile(
    "(?P<alone>[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])"  # kana, Han, Hangul
    "|(?P<base>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"  # Thai and Lao, Myanmar, Khmer
    r"|[\W_]"
)
_ASCII_WORD = re.compile("[a-z0-9]+")
_LONGEST_WORD = 32
"""Longer runs are identifiers, which have no stem; they would also make the cache of stems large.
"""

Stemmer = Callable[[str], list[str]]


def tokens(text: str, *, stemmer: bool) -> list[str]:
    """The tokens of `text`, in order."""
    words = _ASCII_WORD.findall(text.lower()) if text.isascii() else _words(text)
    return (
        [_stem(word) if word.isascii() and len(word) <= _LONGEST_WORD else word for word in words]
        if stemmer
        else words
    )


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each run of `n` words occurs."""
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


@cache
def load_stemmer() -> Stemmer:
    """Load rouge-score's stemmer; its import takes two seconds and 100 MB, so scorers that need it
    call this when built.
    """
    stem: Stemmer = (
        import_module("rouge_score.tokenizers").DefaultTokenizer(use_stemmer=True).tokenize
    )
    return stem


def _words(text: str) -> list[str]:
    return _SPECIAL.sub(_separated, unicodedata.normalize("NFKC", text).lower()).split()


def _separated(match: re.Match[str]) -> str:
    char = match[0]
    if match.lastgroup == "alone":
        return f" {char} "
    if unicodedata.category(char).startswith("M"):
        return char
    return f" {char}" if match.lastgroup == "base" else " "


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    return "".join(load_stemmer()(word))

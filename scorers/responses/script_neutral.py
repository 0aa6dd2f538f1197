"""Brings text of any script into a form in which values can be found with ASCII patterns.

Chinese, Japanese, Thai and others put no blanks between words, and Korean none before particles. So
the letters beside a value would seem to be a part of it, as those of an id are.
"""

from __future__ import annotations

import re
import unicodedata

DATE = (
    r"(?:(?P<year>\d{4})\s?[年년]\s?)?"
    r"(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日号號일]"
)
"""A date as Chinese, Japanese and Korean write it."""

MORNING = frozenset(["上午", "早上", "早晨", "清晨", "凌晨", "午前", "朝", "오전", "새벽", "아침"])
NOON = "中午"
AFTERNOON = frozenset(["下午", "傍晚", "午後", "夕方", "오후", "저녁"])
NIGHT = frozenset(["晚上", "夜里", "夜", "밤"])
"""In the night, 12 is midnight and hours up to 4 are those after it."""
CLOCK = (
    rf"(?P<part>{'|'.join(sorted({NOON} | MORNING | AFTERNOON | NIGHT, reverse=True))})\s?"
    r"(?P<hour>\d{1,2})"
    r"(?:[:：](?P<minute>\d{2})(?!\d)(?::\d{2}(?!\d))?"
    r"|\s?[点點时時시](?![間间간])(?:\s?(?P<spoken>\d{1,2})\s?[分분]|\s?(?P<half>[半반]))?)"
)
"""A time of day with the part of the day before it."""
_CLOCK = re.sub(r"\?P<\w+>", "?:", CLOCK)

_FOREIGN_DIGIT = re.compile(r"(?=[^\x00-\x7f])\d")
_ADJOINING = re.compile(
    f"{DATE}|{_CLOCK}|(?P<letters>(?:(?!{_CLOCK})["
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Myanmar, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # kana, Han
    "\uac00-\ud7af])+)"  # Hangul
)
_BOUNDARY = "|"
"""A character that no value has."""


def script_neutral(text: str) -> str:
    """The text with the digits of all scripts as ASCII digits, and with a boundary in place of each
    letter that may adjoin a value, except in dates and times. It has the same length.
    """
    if text.isascii():
        return text
    text = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    return _ADJOINING.sub(_separated, text)


def _separated(found: re.Match[str]) -> str:
    return _BOUNDARY * len(found[0]) if found["letters"] else found[0]

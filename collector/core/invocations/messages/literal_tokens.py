"""The tokens of a Python literal, and the values of its strings and numbers.

Python's own parser is not used: it takes quadratic time for f-strings, and holds up all threads.
Every pattern here takes linear time for any text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

MAX_NUMBER_CHARACTERS = 3_500
"""Converting decimals takes quadratic time, and Python refuses more than 4,300 digits. Hexadecimal
numbers of this length have fewer decimal digits.
"""

_SPACE = r"[ \t\n\r\f]*+"
_PREFIX = r"(?:[bB][rR]?|[rR][bB]?|[uU])?"
_QUOTED = (
    r"(?:'''(?>(?:[^'\\]++|\\.|'(?!''))*)'''"
    r'|"""(?>(?:[^"\\]++|\\.|"(?!""))*)"""'
    r"|'(?!'')(?>(?:[^'\\\n\r]++|\\.)*)'"
    r'|"(?!"")(?>(?:[^"\\\n\r]++|\\.)*)")'
)
_DIGITS = r"[0-9](?>(?:_?[0-9])*)"
_NUMBER = (
    r"[+-]?[ \t]*+"
    r"(?:0[xX](?>(?:_?[0-9a-fA-F])+)|0[oO](?>(?:_?[0-7])+)|0[bB](?>(?:_?[01])+)"
    rf"|(?:{_DIGITS}\.?(?>(?:{_DIGITS})?)|\.{_DIGITS})(?>(?:[eE][+-]?{_DIGITS})?))(?!\w)"
)
_OPAQUE = r"[^<>:\n'\"]{1,300}+"
"""What an object writes between angle brackets if it shows no value: `function f at 0x7f`."""

_TOKEN = re.compile(
    rf"{_SPACE}(?:"
    rf"(?P<string>{_PREFIX}{_QUOTED}(?>(?:{_SPACE}{_PREFIX}{_QUOTED})*))"
    rf"|(?P<number>{_NUMBER})"
    r"|(?P<name>[^\W\d]\w*+(?>(?:\.[^\W\d]\w*+)*))"
    r"|(?P<enum><[^\W\d]\w*+(?>(?:\.[^\W\d]\w*+)+):)"
    rf"|(?P<opaque><class '[^'<>\n]{{1,300}}+'>|<(?>(?:{_OPAQUE}|<{_OPAQUE}>)+)>)"
    r"|(?P<opening>[\[({])|(?P<closing>[\])}>])|(?P<comma>,)|(?P<colon>:)|(?P<equals>=)"
    r"|(?P<ellipsis>\.\.\.)|(?P<end>\Z))",
    re.DOTALL,
)
_STRING = re.compile(rf"({_PREFIX})({_QUOTED})", re.DOTALL)
_INTEGER = re.compile(r"[+-]?(?:0[xXoObB][0-9a-fA-F_]+|[0-9_]+)")
_NEWLINE = re.compile(r"\r\n?")


def _escapes(codes: str, more: str) -> re.Pattern[str]:
    return re.compile(
        rf"\\(?:(?P<octal>[0-7]{{1,3}})|(?P<code>{codes})|(?P<simple>[\n\\'\"abfnrtv])"
        rf"|{more}|(?P<unknown>.))",
        re.DOTALL,
    )


_IN_BYTES = _escapes("x[0-9a-fA-F]{2}", "(?P<incomplete>x)")
_IN_TEXT = _escapes(
    "x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}",
    r"N\{(?P<name>[^}]{1,100}+)\}|(?P<incomplete>[xuUN])",
)
_SIMPLE_ESCAPES: Mapping[str, str] = dict(
    zip("\n\\'\"abfnrtv", ("", *"\\'\"\a\b\f\n\r\t\v"), strict=True)
)


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The kind and the text of each token; the last one is the `end`. Raises `ValueError`."""
    at, kind = 0, ""
    while kind != "end":
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"found no part of a literal at character {at:,}")
        kind, at = match.lastgroup, match.end()
        yield kind, match[kind]


def string_value(token: str) -> str | bytes:
    """The value of one or several adjacent strings. Raises `ValueError`."""
    parts = [_unquoted(prefix.lower(), quoted) for prefix, quoted in _STRING.findall(token)]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "".join(texts)
    if texts:
        raise ValueError("found text beside bytes, expected one of them")
    return b"".join(part for part in parts if isinstance(part, bytes))


def number_value(token: str) -> float:
    """The value of an integer or a float. Raises `ValueError`."""
    if len(token) > MAX_NUMBER_CHARACTERS:
        raise ValueError(f"found a number of {len(token):,} characters")
    compact = "".join(token.split())
    if _INTEGER.fullmatch(compact):
        return int(compact, 0)
    return float(compact)


def _unquoted(prefix: str, quoted: str) -> str | bytes:
    quotes = 3 if quoted[:3] in ("'''", '"""') else 1
    text = quoted[quotes:-quotes]
    if "\r" in text:
        text = _NEWLINE.sub("\n", text)
    if "b" in prefix:
        return _encoded(text, is_raw="r" in prefix)
    if "\\" in text and "r" not in prefix:
        return _IN_TEXT.sub(_unescaped, text)
    return text


def _encoded(text: str, *, is_raw: bool) -> bytes:
    if not text.isascii():
        raise ValueError("found bytes that are not ASCII")
    if "\\" in text and not is_raw:
        text = _IN_BYTES.sub(_unescaped, text)
    return text.encode("latin-1")


def _unescaped(escape: re.Match[str]) -> str:
    written: str = escape[0]
    match escape.lastgroup:
        case "simple":
            return _SIMPLE_ESCAPES[written[1:]]
        case "code":
            return chr(int(written[2:], 16))
        case "octal":
            return chr(int(written[1:], 8))
        case "name":
            return _character(escape["name"])
        case "unknown":
            return written
    raise ValueError(f"found an incomplete escape {written}")


def _character(name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError as error:
        raise ValueError(f"found an unknown character {name!r}") from error

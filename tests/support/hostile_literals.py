"""Text that looks like a Python literal: every construct of Python's grammar, many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pathgauge.collector.core.invocations.messages.literals import MAX_LEVELS

_DEEP = MAX_LEVELS - 1

REPEATED = (
    # Numbers
    *("1,", "-1,", "+ 1,", "1.5e3,", ".5,", "0x1f,", "0o17,", "0b11,", "1_0,", "1j,", "1+2j,"),
    *("01,", "1e999,", "-", "~", "not "),
    # Strings
    *("'a',", '"a",', "b'a',", "r'\\d',", "Rb'\\d',", "u'a',", "'a' ", "'a'b'a',", "'''a''',"),
    *('"""a""",', "f'a',", "f'{a}',", "rf'{a}',", "f'{a!r:>{b}}',", "f'''{a}''',", "'\\n',"),
    *("'\\x41',", "'\\u0041',", "'\\N{DIGIT ONE}',", "'\\d',", "'\\x4',", "b'\\377',", "'\\\n',"),
    # Brackets
    *("(),", "[],", "{},", "(1),", "(1,),", "{1},", "{1:2},", "{'a':1},", "set(),", "[[]],"),
    *("[", "(", "{", "[1,", "{'a':", "{1:[", "f(", "f(a=", "]", ")", "}"),
    # Names, calls, operators
    *("a,", "None,", "True,", "...,", "a.b,", "a(),", "a(1, b=2),", "a(b=c(d=1)),", "()", "[1]"),
    *("a[1:2],", ".b", "a+", "1+", "a**", "a@", "a<", "a and ", "a if b else ", "lambda:"),
    *("lambda a=1: a,", "*a,", "**a,", "(a:=1),", "await a,", "yield ", "(a for a in b),"),
    *("[a for a in b],", "{a: a for a in b},", "<A: 1>,", "<a object at 0x1>,", "a=1,"),
    # No part of a literal
    *(" ", "\t", "\n", "\r\n", "\f", "\\\n", "#\n", "#", ",", ":", "=", "!", "$", "\\", "'", '"'),
    *("'''", "\0", "é", "日", "\u2028", "\ud800", ";"),
)
"""Pieces of which a text may have any number."""

_COLLIDING = 2**61 - 1
"""Multiples of it have the same hash."""

INSIDE: Mapping[str, Callable[[int], str]] = {
    "fields of an f-string": lambda size: "f'" + "{b}{a}" * (size // 6) + "'",
    "nested f-strings": lambda size: "f'{" * (size // 6) + "1" + "}'" * (size // 6),
    "specifications of an f-string": lambda size: "f'{a:" + "{b}" * (size // 3) + "}'",
    "braces of an f-string": lambda size: "f'" + "{{}}" * (size // 4) + "'",
    "one string": lambda size: "'" + "a" * size + "'",
    "a string without an end": lambda size: "'" + "a" * size,
    "triple quotes without an end": lambda size: "'''" + "a'" * (size // 2),
    "escapes": lambda size: "'" + "\\n" * (size // 2) + "'",
    "named escapes": lambda size: "'" + "\\N{BULLET}" * (size // 10) + "'",
    "names without an end": lambda size: "'" + "\\N{" * (size // 3) + "'",
    "a long name": lambda size: "'\\N{" + "A" * size + "}'",
    "digits": lambda size: "1" * size,
    "hexadecimal digits": lambda size: "0x" + "f" * size,
    "digits of a fraction": lambda size: "0." + "1" * size,
    "an exponent": lambda size: "1e" + "9" * size,
    "underscores": lambda size: "1" + "_1" * (size // 2),
    "long integers": lambda size: ",".join(["9" * 3_400] * (size // 3_400)),
    "keys with one hash": lambda size: (
        "{" + ",".join(f"{_COLLIDING * key}:1" for key in range(size // 23)) + "}"
    ),
    "members with one hash": lambda size: (
        "{" + ",".join(str(_COLLIDING * key) for key in range(size // 21)) + "}"
    ),
    "the same key": lambda size: "{" + "'a':1," * (size // 6) + "}",
    "tuples as keys": lambda size: (
        "{" + ",".join(f"({key},{key}):1" for key in range(size // 14)) + "}"
    ),
    "lists as keys": lambda size: "{" + "[]:1," * (size // 5) + "}",
    "deep brackets": lambda size: ("[" * _DEEP + "]" * _DEEP + ",") * (size // 299),
    "deep dicts": lambda size: ("{1:" * _DEEP + "1" + "}" * _DEEP + ",") * (size // 598),
    "deep calls": lambda size: ("f(" * _DEEP + ")" * _DEEP + ",") * (size // 448),
    "deep enumerations": lambda size: (
        ("<A.B: " * _DEEP + "1" + ">" * _DEEP + ",") * (size // 1_045)
    ),
    "enumerations without an end": lambda size: "<A.B: " * (size // 6),
    "objects without an end": lambda size: "<a object at 0x1" * (size // 16),
    "objects inside objects": lambda size: "<" + "<a>" * (size // 3),
    "a long object": lambda size: "<" + "a " * (size // 2) + ">",
    "fields of a model": lambda size: "a='b' " * (size // 6),
    "a list that breaks off": lambda size: "1," * (size // 2) + "?",
    **{repr(piece): lambda size, piece=piece: piece * (size // len(piece)) for piece in REPEATED},  # type: ignore[misc]
}
"""Each construct, by name: text of about so many characters."""

AROUND: Mapping[str, tuple[str, str]] = {
    "a list": ("[", "]"),
    "a dict": ("{'password': ", "}"),
    "a dict that breaks off": ("{'password': 'a', ", ""),
    "a call": ("ResponseFunctionToolCall(name='a', arguments=", ")"),
    "a message of Haystack": ("ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[", "])"),
    "a message of AutoGen": ("source='user' models_usage=None content=", " type='TextMessage'"),
    "text": ('"', '"'),
}
"""What is written before and after it."""


def written(construct: str, around: str, size: int) -> str:
    """A construct inside something, at most `size` characters."""
    before, after = AROUND[around]
    inside = INSIDE[construct](size - len(before) - len(after) - 8)
    return (before + inside + after)[:size]

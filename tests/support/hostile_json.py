"""JSON, and what nearly is JSON: every construct of its grammar, about any number of characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

REPEATED = (
    # Scalars
    *("1,", "-1,", "1.5e3,", "1e999,", "1E-400,", "01,", "+1,", "0x1f,", "NaN,", "-Infinity,"),
    *("null,", "true,", "nul,", "18446744073709551616,"),
    # Strings
    *(
        '"a",',
        '"",',
        '"\\n",',
        '"\\u0041",',
        '"\\ud83d\\ude00",',
        '"\\ud83d",',
        '"\\ud83d\\u0041",',
    ),
    *('"\\\\ud83d",', '"\\d",', '"\\u00",', "'a',", '"é",', '"日",', '"😀",', '"\\"",'),
    # Arrays and objects
    *("[],", "{},", "[[]],", "[{}],", '{"a":1},', '{"a":{}},', '{"a":[]},', "[1,2],", "[,],"),
    *("[", "{", '{"a":', "[1,", '[{"a":', "]", "}", "],", "{1:2},", '{"a"},', '{"a":1,},'),
    # Between values
    *(" ", "\t", "\r\n", ",", ":", '"', '""', "\\", "\\\\", "\0", "/**/", "//\n", "\ufeff", "a"),
)
"""Pieces of which a text may have any number."""

INSIDE: Mapping[str, Callable[[int], str]] = {
    "a long string": lambda size: '"' + "a" * size + '"',
    "a string without an end": lambda size: '"' + "a" * size,
    "letters of four bytes": lambda size: '"' + "😀" * (size // 4) + '"',
    "escapes": lambda size: '"' + "\\n" * (size // 2) + '"',
    "escapes of letters": lambda size: '"' + "\\u65e5" * (size // 6) + '"',
    "surrogate pairs": lambda size: '"' + "\\ud83d\\ude00" * (size // 12) + '"',
    "halves of surrogate pairs": lambda size: '"' + "\\ud83d" * (size // 6) + '"',
    "one half after backslashes": lambda size: '"' + "\\" * (size // 2 * 2) + '\\ud83d"',
    "an escape that breaks off": lambda size: '"' + "\\\\" * (size // 2) + "\\",
    "digits": lambda size: "1" * size,
    "digits of a fraction": lambda size: "0." + "1" * size,
    "zeros of a fraction": lambda size: "0." + "0" * size + "1",
    "an exponent": lambda size: "1e" + "9" * size,
    "digits near the middle of two floats": lambda size: "9007199254740993." + "0" * size + "1",
    "long numbers": lambda size: ",".join(["9" * 300] * (size // 301)),
    "different keys": lambda size: (
        "{" + ",".join(f'"{key:09}":1' for key in range(size // 14)) + "}"
    ),
    "the same key": lambda size: "{" + '"a":1,' * (size // 6) + '"a":1}',
    "a long key": lambda size: '{"' + "a" * size + '":1}',
    "keys with escapes": lambda size: "{" + '"\\u0061":1,' * (size // 11) + '"a":1}',
    "arrays 150 deep": lambda size: ",".join(["[" * 150 + "]" * 150] * (size // 301)),
    "objects 150 deep": lambda size: ",".join(['{"a":' * 150 + "1" + "}" * 150] * (size // 902)),
    "arrays 900 deep": lambda size: ",".join(["[" * 900 + "]" * 900] * (size // 1_801)),
    "arrays that get deeper": lambda size: (
        "[" * (size // 8) + "]" * (size // 8) + "," + ",".join(["[]"] * (size // 4))
    ),
    "an array that breaks off": lambda size: "1," * (size // 2) + "?",
    "JSON in a string": lambda size: json.dumps("[" + "[]," * (size // 3) + "[]]"),
    "JSON in a string in a string": lambda size: json.dumps(
        json.dumps("[" + '"a",' * (size // 10) + "1]")
    ),
    "documents after each other": lambda size: '{"a": 1}\n' * (size // 9),
    **{repr(piece): lambda size, piece=piece: piece * (size // len(piece)) for piece in REPEATED},  # type: ignore[misc]
}
"""Each construct, by name: text of about so many characters."""

AROUND: Mapping[str, tuple[str, str]] = {
    "nothing": ("", ""),
    "an array": ("[", "]"),
    "an array that goes on": ("[", "0]"),
    "an object": ('{"role": "user", "content": [', "0]}"),
    "an array that breaks off": ('[{"role": "user", "content": [', ""),
    "text": ('"', '"'),
}
"""What is written before and after it."""


def written(construct: str, around: str, size: int) -> str:
    """A construct inside something."""
    before, after = AROUND[around]
    return before + INSIDE[construct](size) + after

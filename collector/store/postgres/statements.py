"""Rewrites the statements of the store, which are written for SQLite, for PostgreSQL.

Little differs: the form of parameters, hints about indexes, and two functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

_CACHED = 512
_WORDS = (
    (re.compile(r"\b(?:NOT INDEXED|INDEXED BY \w+)\b"), ""),
    (re.compile(r"\binstr\("), "strpos("),
    (re.compile(r"\blength\(CAST\((\w+) AS BLOB\)\)"), r"octet_length(\1)"),
)
_TOKEN = re.compile(r"'(?:[^']|'')*'|\?|::|:(?P<name>[a-z_]+)")
"""Literals and casts are tokens, so that nothing in them is taken for a parameter."""


class Statement(NamedTuple):
    """A statement with the parameters `$1`, `$2` and so on."""

    text: str
    names: tuple[str, ...] = ()
    """The parameters by name, in their order; empty if they have no names."""

    def values(self, parameters: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any]:
        """The parameters in their order."""
        if isinstance(parameters, Mapping):
            return [parameters[name] for name in self.names]
        return parameters


@lru_cache(_CACHED)
def translated(statement: str) -> Statement:
    """The statement for PostgreSQL."""
    for words, replacement in _WORDS:
        statement = words.sub(replacement, statement)
    names: dict[str, int] = {}
    number = 0

    def parameter(token: re.Match[str]) -> str:
        nonlocal number
        name = token["name"]
        if name is not None:
            return f"${names.setdefault(name, len(names) + 1)}"
        if token[0] != "?":
            return token[0]
        number += 1
        return f"${number}"

    text = _TOKEN.sub(parameter, statement)
    return Statement(text, tuple(names))

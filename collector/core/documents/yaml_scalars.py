"""The scalars of YAML: the types of YAML 1.2's core schema, and variables in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pathgauge.scorers.types import Json

_TYPES: dict[str, tuple[str, Callable[[str], Json]]] = {
    "null": (r"~|null|Null|NULL|", lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    "int": (
        r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
        lambda text: int(text, 0 if text[:2] in ("0o", "0x") else 10),
    ),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        lambda text: float(re.sub(r"\.(?=[inIN])", "", text)),
    ),
    "str": (r"(?s:.*)", str),
}
_PATTERNS = {kind: re.compile(rf"(?:{pattern})\Z") for kind, (pattern, _) in _TYPES.items()}
_NOT_TEXT = frozenset("~nNtTfF+-.0123456789")
"""The first characters of all scalars that are not text."""

_REFERENCE = re.compile(r"\$\$|\$\{(?P<body>[^{}]*)\}|\$\{")
_BODY = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


def type_of(text: str) -> str:
    """The type of a plain scalar."""
    if text and text[0] not in _NOT_TEXT:
        return "str"
    return next(kind for kind, pattern in _PATTERNS.items() if pattern.match(text))


def is_type(kind: str) -> bool:
    """Whether the core schema has a type of this name for scalars."""
    return kind in _TYPES


def converted(kind: str, text: str) -> Json:
    """The value of a scalar. Raises `ValueError` with a description of the mistake."""
    if kind == "str":
        return text
    if not _PATTERNS[kind].match(text):
        raise ValueError(f"found {text!r}, expected !!{kind}")
    try:
        return _TYPES[kind][1](text)
    except ValueError:
        problem = "found a number with thousands of digits, expected a shorter one"
        raise ValueError(problem) from None


def replaced(text: str, environment: Mapping[str, str], refuse: Callable[[str], None]) -> str:
    """The text with its variables replaced. `refuse` is called with a description of each
    mistake.
    """

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        body = _BODY.fullmatch(match["body"] or "")
        if body is None:
            refuse(
                f"found {match[0]!r}, expected ${{env:NAME}} or ${{env:NAME:-default}} ($$ is a"
                " dollar sign)"
            )
            return ""
        value: str | None = environment.get(body["name"], body["default"])
        if value is None:
            refuse(f"found {match[0]}, expected the environment variable {body['name']} to be set")
        return value or ""

    return _REFERENCE.sub(replace, text)

"""Parses text that may be a Python `repr`, at a bounded cost."""

from __future__ import annotations

import ast

MAX_LITERAL_CHARACTERS = 2**17
"""Python's parser uses up to 500 bytes and 4 µs per character, so 66 MB and half a second."""


def expression(text: str) -> ast.expr:
    """Parse text as one expression. Raises the errors of Python's parser, and ValueError if the
    text is too long.
    """
    if len(text) > MAX_LITERAL_CHARACTERS:
        raise ValueError(
            f"found {len(text):,} characters, expected at most {MAX_LITERAL_CHARACTERS:,}"
        )
    return ast.parse(text.lstrip(" \t"), mode="eval").body

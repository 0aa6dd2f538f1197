"""Shared wording of explanations: one line, of limited length."""

from __future__ import annotations

from collections.abc import Sized


def one_line(text: str) -> str:
    """The text with single blanks in place of line breaks and other white space."""
    return " ".join(text.split())


def cut(text: str, max_length: int) -> str:
    """The text, cut to at most `max_length` characters."""
    if len(text) <= max_length:
        return text
    return f"{text[: max_length - 1]}…"


def short(value: object) -> str:
    """A value as Python writes it, for messages, cut to 60 characters."""
    return cut(repr(value), 60)


def and_more(items: Sized) -> str:
    """For instance `, and 2 more`, for an explanation that shows only the first of the items."""
    if len(items) <= 1:
        return ""
    return f", and {len(items) - 1} more"


def counted(count: int, noun: str) -> str:
    """For instance `1 tool call`, `2 tool calls`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"

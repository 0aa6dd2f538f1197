"""Datasets of chat messages, such as those for LangChain's agentevals: a `Document` comes in, one
`Reference` a trajectory goes out.

A trajectory is a list of messages, or a mapping with `messages`; it stands alone, in a list, or in
a row under `reference_outputs`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problems, show_value
from pathgauge.collector.core.references.loaded import Contents, said
from pathgauge.collector.core.references.rows import Names, id_key, mappings, rows
from pathgauge.collector.core.references.transcripts import (
    begins_with_user,
    is_message,
    last_said,
    turns,
)
from pathgauge.scorers.types import Json, Reference

KEYS = ("messages", "reference_outputs")
"""The keys that tell a row with a trajectory from other formats."""


def recognises(data: Json) -> bool:
    """Whether the data is a list of messages, or has a row with one."""
    if isinstance(data, list) and any(_is_trajectory(item) or is_message(item) for item in data):
        return True
    return any(key in row for row in mappings(data) for key in KEYS)


def load(document: Document) -> Contents:
    """The references of one dataset. Raises `ConfigError` with every problem."""
    contents, names, problems = Contents(document), Names(document), Problems()
    alone = isinstance(document.data, list) and any(is_message(item) for item in document.data)
    for path, row in [((), document.data)] if alone else rows(document):
        with problems:
            contents.add(path, _reference(document, path, row, names, contents))
    problems.report()
    contents.notes.extend(names.notes())
    return contents


def _reference(
    document: Document, path: KeyPath, row: Json, names: Names, contents: Contents
) -> Reference:
    keys: Mapping[str, Json] = row if isinstance(row, dict) else {}
    place, messages = _messages(document, path, row)
    asked = None if begins_with_user(messages) else _asked(keys.get("inputs"))
    contents.ignored.update(
        key
        for key in said(keys)
        if key not in (*KEYS, id_key(keys)) and not (key == "inputs" and asked)
    )
    found = turns(document, place, messages, asked, contents.ignored)
    prompt = [turn.user_input for turn in found]
    return Reference(names.name(path, keys, prompt), found)


def _messages(document: Document, path: KeyPath, value: Json) -> tuple[KeyPath, Json]:
    """The list of messages in whatever it is wrapped, and its path."""
    for key in ("reference_outputs", "messages"):
        if isinstance(value, dict) and key in value:
            path, value = (*path, key), value[key]
    if not isinstance(value, list):
        raise ConfigError(
            [document.problem(path, f"found {show_value(value)}, expected a list of messages")]
        )
    return path, value


def _is_trajectory(item: Json) -> bool:
    return isinstance(item, list) and any(is_message(message) for message in item)


def _asked(inputs: Json) -> str | None:
    """What the user asks, in the inputs of a row: text, messages, or a mapping with messages or one
    text.
    """
    if isinstance(inputs, dict):
        inputs = (
            inputs["messages"]
            if "messages" in inputs
            else next(iter(inputs.values()))
            if len(inputs) == 1
            else None
        )
    return inputs if isinstance(inputs, str) else last_said(inputs, by_user=True)

"""The format for datasets of chat messages, such as those for LangChain's agentevals.

A trajectory is a list of messages, or a mapping with `messages`. It may be the whole file, an item
of a list, or the value of `reference_outputs` in a row.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problems, show_value
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.ignored_keys import non_empty_keys
from pathgauge.collector.core.references.rows import RowNames, id_key, mappings, rows
from pathgauge.collector.core.references.transcripts import (
    begins_with_user,
    is_message,
    last_text,
    turns,
)
from pathgauge.scorers.types import Json, Reference

_KEYS = ("messages", "reference_outputs")
_BEFORE = ("pathgauge",)
"""A row may have `scenario` as its id."""


def recognises(data: Json) -> bool:
    """Whether the data is a list of messages, or has a row with one."""
    if isinstance(data, list) and any(_is_trajectory(item) or is_message(item) for item in data):
        return True
    return any(key in row for row in mappings(data) for key in _KEYS)


def load(document: Document) -> LoadedReferences:
    """The references of one dataset. Raises `ConfigError` with every problem."""
    loaded, names, problems = LoadedReferences(document), RowNames(document), Problems()
    for path, row in _trajectories(document):
        with problems:
            loaded.add(path, _reference(document, path, row, names, loaded))
    problems.report()
    loaded.notes.extend(names.notes(loaded.references))
    return loaded


FORMAT = Format("chat messages", _KEYS, recognises, load, _BEFORE)


def _trajectories(document: Document) -> list[tuple[KeyPath, Json]]:
    is_one_list = isinstance(document.data, list) and any(
        is_message(item) for item in document.data
    )
    return [((), document.data)] if is_one_list else list(rows(document))


def _reference(
    document: Document, path: KeyPath, row: Json, names: RowNames, loaded: LoadedReferences
) -> Reference:
    columns: Mapping[str, Json] = row if isinstance(row, dict) else {}
    messages_path, messages = _messages(document, path, row)
    user_input = None if begins_with_user(messages) else _user_input(columns.get("inputs"))
    used = {*_KEYS, id_key(columns)}
    if user_input:
        used.add("inputs")
    loaded.ignored.update(key for key in non_empty_keys(columns) if key not in used)
    found = turns(document, messages_path, messages, user_input, loaded.ignored)
    prompt = [turn.user_input for turn in found]
    return Reference(names.name(path, columns, prompt), found)


def _messages(document: Document, path: KeyPath, value: Json) -> tuple[KeyPath, Json]:
    """The list of messages inside its wrappers, and its path."""
    for key in ("reference_outputs", "messages"):
        if isinstance(value, dict) and key in value:
            path, value = (*path, key), value[key]
    if not isinstance(value, list):
        text = f"found {show_value(value)}, expected a list of messages"
        raise ConfigError([document.problem(path, text)])
    return path, value


def _is_trajectory(item: Json) -> bool:
    return isinstance(item, list) and any(is_message(message) for message in item)


def _user_input(inputs: Json) -> str | None:
    """The user's text in the `inputs` of a row: text, messages, or a mapping with messages or with
    a single text.
    """
    if isinstance(inputs, dict) and "messages" in inputs:
        inputs = inputs["messages"]
    elif isinstance(inputs, dict):
        inputs = next(iter(inputs.values())) if len(inputs) == 1 else None
    if isinstance(inputs, str):
        return inputs
    return last_text(inputs, by_user=True)

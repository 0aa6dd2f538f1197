"""The format for evaluation datasets of Vertex AI: each row becomes a reference with one turn.

A dataset is a list of rows, or one mapping of columns, as pandas writes it. Trajectories and tool
inputs may be JSON text. The recorded behaviour of an agent (`predicted_trajectory`, `response`) is
ignored, because it is not a reference; `pathgauge score` scores it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Problems,
    embedded,
    show_value,
)
from pathgauge.collector.core.documents.places import moved
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.ignored_keys import non_empty_keys, unknown_keys
from pathgauge.collector.core.references.rows import RowNames, id_key, mappings, rows, text_at
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

_BEFORE = ("graph", "messages", "pathgauge")
"""A row may contain keys of these formats, such as `scenario` as its id."""
_TRAJECTORIES = ("reference_trajectory", "predicted_trajectory")
_READ = ("prompt", "reference", "reference_trajectory")


class _Call(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    tool_name: Annotated[str, Field(min_length=1)]
    tool_input: dict[str, Any] | None = None


def recognises(data: Json) -> bool:
    """Whether the data has a row, or columns, of such a dataset. A dataset for responses alone has
    `prompt` and `reference`.
    """
    return any(
        "reference_trajectory" in row or {"prompt", "reference"} <= row.keys()
        for row in mappings(data)
    )


def load(document: Document) -> LoadedReferences:
    """The references of one dataset. Raises `ConfigError` with every problem."""
    document = by_row(document)
    loaded, names, problems = LoadedReferences(document), RowNames(document), Problems()
    for path, row in rows(document):
        with problems:
            if not isinstance(row, dict):
                text = f"found {show_value(row)}, expected a mapping"
                raise ConfigError([document.problem(path, text)])
            loaded.add(path, _reference(document, path, row, names, loaded))
    problems.report()
    loaded.notes.extend(names.notes(loaded.references))
    return loaded


FORMAT = Format(
    "Vertex AI dataset",
    ("reference_trajectory",),
    recognises,
    load,
    _BEFORE,
)


def _reference(
    document: Document,
    path: KeyPath,
    row: Mapping[str, Json],
    names: RowNames,
    loaded: LoadedReferences,
) -> Reference:
    turn = reference_turn(document, path, row, loaded.ignored)
    if turn is None:
        text = "found neither reference_trajectory nor reference, expected one of them"
        raise ConfigError([document.problem(path, text)])
    loaded.ignored.update(key for key in non_empty_keys(row) if key not in (*_READ, id_key(row)))
    return Reference(names.name(path, row, turn.user_input), (turn,))


def reference_turn(
    document: Document, path: KeyPath, row: Mapping[str, Json], ignored: Counter[str]
) -> ReferenceTurn | None:
    """The expected behaviour in the row at `path`; `None` if the row has neither a trajectory nor a
    response. Keys of calls that have no meaning are counted in `ignored`. Raises `ConfigError`.
    """
    prompt = text_at(document, (*path, "prompt"), row.get("prompt"))
    response = text_at(document, (*path, "reference"), row.get("reference"))
    calls = _trajectory(document, (*path, "reference_trajectory"), row, ignored)
    if calls is None and response is None:
        return None
    return ReferenceTurn(prompt, calls, response)


def trajectory_items(
    document: Document, path: KeyPath, value: Json
) -> list[tuple[KeyPath, Json]] | None:
    """The tool calls in the cell at `path`, each with its path. A call is a mapping or a name.
    `None` if the cell is empty. Raises `ConfigError`.
    """
    if value in (None, ""):
        return None
    if isinstance(value, str):
        value = embedded.read(document, path, value)
    if not isinstance(value, list):
        text = f"found {show_value(value)}, expected a list of tool calls"
        raise ConfigError([document.problem(path, text)])
    return [((*path, index), item) for index, item in enumerate(value)]


def _trajectory(
    document: Document, path: KeyPath, row: Mapping[str, Json], ignored: Counter[str]
) -> tuple[ExpectedCall, ...] | None:
    """The expected calls. `None`, which means any calls, if the row has no trajectory."""
    items = trajectory_items(document, path, row.get("reference_trajectory"))
    if items is None:
        return None
    problems = Problems()
    calls = []
    for item_path, item in items:
        with problems:
            call = validate(_Call, document, _call_mapping(document, item_path, item), item_path)
            ignored.update(unknown_keys(call, "reference_trajectory."))
            calls.append(ExpectedCall(call.tool_name, call.tool_input))
    problems.report()
    return tuple(calls)


def _call_mapping(document: Document, path: KeyPath, call: Json) -> Json:
    """A call as a mapping, with its tool input parsed if it is JSON text."""
    if isinstance(call, str):
        return {"tool_name": call}
    if isinstance(call, dict) and isinstance(call.get("tool_input"), str):
        tool_input = embedded.read(document, (*path, "tool_input"), call["tool_input"])
        return {**call, "tool_input": tool_input}
    return call


def _is_columns(data: Mapping[str, Json]) -> bool:
    """Whether a mapping contains columns instead of a single row."""
    if isinstance(data.get("prompt"), list | dict):
        return True
    return any(_is_column_of_trajectories(data.get(key)) for key in _TRAJECTORIES)


def _is_column_of_trajectories(value: Json) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(one, list) for one in value)
    )


def by_row(document: Document) -> Document:
    """The document with its columns, if it has any, transposed into rows. Raises `ConfigError` if
    the columns differ in length.
    """
    if not isinstance(document.data, dict) or not _is_columns(document.data):
        return document
    columns = {key: dict(_cells(document, key, column)) for key, column in document.data.items()}
    indices = list(next(iter(columns.values())))
    for key, column in columns.items():
        if list(column) != indices:
            found = counted(len(column), "cell")
            text = f"found {found}, expected {len(indices)} as in the first column"
            raise ConfigError([document.problem((key,), text)])
    data = [{key: column[index] for key, column in columns.items()} for index in indices]
    return moved(document, data, lambda path: _in_columns(indices, path))


def _in_columns(indices: Sequence[str | int], path: KeyPath) -> KeyPath:
    """The path in the columns, given the path in the rows."""
    if len(path) < 2 or not isinstance(path[0], int):
        return ()
    return (path[1], indices[path[0]], *path[2:])


def _cells(document: Document, key: str, column: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(column, dict):
        yield from column.items()
    elif isinstance(column, list):
        yield from enumerate(column)
    else:
        text = f"found {show_value(column)}, expected a column of cells"
        raise ConfigError([document.problem((key,), text)])

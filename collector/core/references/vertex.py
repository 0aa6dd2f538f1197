"""Evaluation datasets of Vertex AI: a `Document` comes in, one `Reference` a row goes out.

Rows stand in a list, a line or a CSV row each, or as columns of one mapping, as pandas writes them.
A trajectory and the input of a tool may be text that holds JSON. What an agent did
(`predicted_trajectory`, `response`) is no reference and is left aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.loaded import Contents, said, unread
from pathgauge.collector.core.references.rows import Names, id_key, mappings, rows, text
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

KEYS = ("reference_trajectory",)
"""The key that tells a dataset from other formats; one for responses alone has `prompt` and
`reference`.
"""

_READ = ("prompt", "reference", "reference_trajectory")


class _Call(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    tool_name: Annotated[str, Field(min_length=1)]
    tool_input: dict[str, Any] | None = None


def recognises(data: Json) -> bool:
    """Whether the data has a row, or columns, of such a dataset."""
    return any(
        "reference_trajectory" in row or {"prompt", "reference"} <= row.keys()
        for row in mappings(data)
    )


def load(document: Document) -> Contents:
    """The references of one dataset. Raises `ConfigError` with every problem."""
    if isinstance(document.data, dict) and _is_columns(document.data):
        document = _by_row(document)
    contents, names, problems = Contents(document), Names(document), Problems()
    for path, row in rows(document):
        with problems:
            if not isinstance(row, dict):
                raise ConfigError(
                    [document.problem(path, f"found {show_value(row)}, expected a mapping")]
                )
            contents.add(path, _reference(document, path, row, names, contents))
    problems.report()
    contents.notes.extend(names.notes())
    return contents


def _reference(
    document: Document, path: KeyPath, row: Mapping[str, Json], names: Names, contents: Contents
) -> Reference:
    prompt = text(document, (*path, "prompt"), row.get("prompt"))
    response = text(document, (*path, "reference"), row.get("reference"))
    calls = _trajectory(
        document, (*path, "reference_trajectory"), row.get("reference_trajectory"), contents
    )
    if calls is None and response is None:
        raise ConfigError(
            [
                document.problem(
                    path, "found neither reference_trajectory nor reference, expected one of them"
                )
            ]
        )
    contents.ignored.update(key for key in said(row) if key not in (*_READ, id_key(row)))
    name = names.name(path, row, prompt if prompt is not None else row.get("reference_trajectory"))
    return Reference(name, (ReferenceTurn(prompt, calls, response),))


def _trajectory(
    document: Document, path: KeyPath, value: Json, contents: Contents
) -> tuple[ExpectedCall, ...] | None:
    """Calls are mappings, or names alone; `None` when the row says nothing about tools."""
    if value in (None, ""):
        return None
    if isinstance(value, str):
        value = embedded.read(document, path, value)
    if not isinstance(value, list):
        raise ConfigError(
            [document.problem(path, f"found {show_value(value)}, expected a list of tool calls")]
        )
    problems = Problems()
    calls = []
    for index, item in enumerate(value):
        with problems:
            call = validate(
                _Call, document, _mapping(document, (*path, index), item), (*path, index)
            )
            contents.ignored.update(unread(call, "reference_trajectory."))
            calls.append(ExpectedCall(call.tool_name, call.tool_input))
    problems.report()
    return tuple(calls)


def _mapping(document: Document, path: KeyPath, call: Json) -> Json:
    """A call as a mapping, its input too."""
    if isinstance(call, str):
        return {"tool_name": call}
    if isinstance(call, dict) and isinstance(call.get("tool_input"), str):
        return {
            **call,
            "tool_input": embedded.read(document, (*path, "tool_input"), call["tool_input"]),
        }
    return call


def _is_columns(data: Mapping[str, Json]) -> bool:
    """Whether a mapping holds columns instead of one row."""
    trajectories = data.get("reference_trajectory")
    if isinstance(data.get("prompt"), list | dict) or isinstance(trajectories, dict):
        return True
    return isinstance(trajectories, list) and any(isinstance(one, list) for one in trajectories)


def _by_row(document: Document) -> Document:
    """The document with a row for what stands at the same place of every column. Raises
    `ConfigError`.
    """
    columns = {key: dict(_cells(document, key, column)) for key, column in document.data.items()}
    indices = list(next(iter(columns.values())))
    for key, column in columns.items():
        if list(column) != indices:
            raise ConfigError(
                [
                    document.problem(
                        (key,),
                        f"found {len(column)} cells, expected {len(indices)} as in the first"
                        " column",
                    )
                ]
            )
    places = {index: row for row, index in enumerate(indices)}
    values = {
        (places[path[1]], path[0], *path[2:]): position
        for path, position in document.values.items()
        if len(path) > 1
    }
    data = [{key: column[index] for key, column in columns.items()} for index in indices]
    return replace(
        document,
        data=data,
        values=values | {(): document.values[()]} if () in document.values else values,
    )


def _cells(document: Document, key: str, column: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(column, dict):
        yield from column.items()
    elif isinstance(column, list):
        yield from enumerate(column)
    else:
        raise ConfigError(
            [document.problem((key,), f"found {show_value(column)}, expected a column of cells")]
        )

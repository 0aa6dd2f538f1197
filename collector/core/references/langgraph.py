"""Trajectories of LangGraph graphs, as LangChain's agentevals extracts them: a `Document` comes in,
one `Reference` a thread goes out.

A trajectory is `{"inputs": [...], "results": [...], "steps": [["__start__", "agent", "tools"],
...]}`; it stands alone, in a list, or under `outputs` or `reference_outputs` of a row. Each list of
steps is a turn. A step is expected as a call of its node's name, with any arguments, so it matches
a tool, or an agent used as a tool, of that name; marks such as `__start__` are no nodes.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problems
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.loaded import Contents, said, unread
from pathgauge.collector.core.references.rows import Names, id_key, mappings, rows
from pathgauge.collector.core.references.transcripts import last_said
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

KEYS = ("steps",)
"""The key that tells a trajectory from other formats."""

_WRAPPERS = ("reference_outputs", "outputs")
_NOTE = (
    "steps are nodes of a graph: as tool calls they match tools, and agents used as tools, of the"
    " same name"
)


class _Trajectory(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    inputs: list[Any] | None = None
    results: list[Any] | None = None
    steps: Annotated[list[list[Annotated[str, Field(min_length=1)]]], Field(min_length=1)]


def recognises(data: Json) -> bool:
    """Whether the data is a trajectory, or has a row with one."""
    return any("steps" in _unwrapped((), row)[1] for row in mappings(data))


def load(document: Document) -> Contents:
    """The references of one document. Raises `ConfigError` with every problem."""
    contents, names, problems = Contents(document), Names(document), Problems()
    for path, row in rows(document):
        with problems:
            contents.add(path, _reference(document, path, row, names, contents))
    problems.report()
    contents.notes.extend([*names.notes(), _NOTE])
    return contents


def _reference(
    document: Document, path: KeyPath, row: Json, names: Names, contents: Contents
) -> Reference:
    place, found = _unwrapped(path, row)
    trajectory = validate(_Trajectory, document, found, place)
    inputs = _per_turn(
        document,
        (*place, "inputs"),
        trajectory.inputs or (row.get("inputs") if found is not row else None),
        trajectory,
    )
    results = _per_turn(document, (*place, "results"), trajectory.results, trajectory)
    asked = [_said(value, by_user=True) for value in inputs]
    turns = [
        ReferenceTurn(
            text,
            tuple(ExpectedCall(node) for node in steps if not _is_mark(node)),
            _said(result, by_user=False),
        )
        for text, steps, result in zip(asked, trajectory.steps, results, strict=True)
    ]
    ignored = [
        *unread(trajectory),
        *(key for key in said(row) if found is not row and key not in ("inputs", *_WRAPPERS)),
    ]
    contents.ignored.update(key for key in ignored if key != id_key(row))
    contents.ignored.update(
        f"steps.{node}" for steps in trajectory.steps for node in steps if _is_mark(node)
    )
    return Reference(names.name(path, row, asked), tuple(turns))


def _per_turn(
    document: Document, path: KeyPath, values: Json, trajectory: _Trajectory
) -> list[Json]:
    """One value for each list of steps. Raises `ConfigError`."""
    if not isinstance(values, list) or not values:
        return [None] * len(trajectory.steps)
    if len(values) != len(trajectory.steps):
        text = (
            f"found {len(values)} values, expected {len(trajectory.steps)}, one for each list of"
            " steps"
        )
        raise ConfigError([document.problem(path, text)])
    return values


def _unwrapped(path: KeyPath, row: Json) -> tuple[KeyPath, Json]:
    for key in _WRAPPERS if isinstance(row, dict) else ():
        if isinstance(row.get(key), dict) and "steps" in row[key]:
            return (*path, key), row[key]
    return path, row


def _is_mark(node: str) -> bool:
    return node.startswith("__") and node.endswith("__")


def _said(state: Json, *, by_user: bool) -> str | None:
    """What the user or the assistant said last in a state of the graph, which may stand below the
    name of a node.
    """
    if isinstance(state, dict) and "messages" not in state and len(state) == 1:
        state = next(iter(state.values()))
    if isinstance(state, dict):
        return last_said(state.get("messages"), by_user=by_user)
    return state if by_user and isinstance(state, str) and not _is_mark(state) else None

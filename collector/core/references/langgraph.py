"""The format for LangGraph trajectories, as agentevals extracts them from a thread.

A trajectory is `{"inputs": [...], "results": [...], "steps": [["__start__", "agent", "tools"]]}`:
the whole document, an item of a list, or the value of `outputs` or `reference_outputs` in a row.
Each list of steps is a turn. A step becomes an expected call of its node's name with any arguments,
so it matches a tool, or an agent used as a tool, of that name. Markers such as `__start__` are not
nodes.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problems
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.ignored_keys import non_empty_keys, unknown_keys
from pathgauge.collector.core.references.rows import RowNames, id_key, mappings, rows
from pathgauge.collector.core.references.transcripts import last_text
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

_BEFORE = ("messages", "pathgauge")
"""A row may contain keys of these formats: `reference_outputs`, or `scenario` as its id."""
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


def load(document: Document) -> LoadedReferences:
    """The references of one document. Raises `ConfigError` with every problem."""
    loaded, names, problems = LoadedReferences(document), RowNames(document), Problems()
    for path, row in rows(document):
        with problems:
            loaded.add(path, _reference(document, path, row, names, loaded))
    problems.report()
    loaded.notes.extend([*names.notes(loaded.references), _NOTE])
    return loaded


FORMAT = Format(
    "LangGraph trajectories",
    ("steps",),
    recognises,
    load,
    _BEFORE,
)


def _reference(
    document: Document, path: KeyPath, row: Json, names: RowNames, loaded: LoadedReferences
) -> Reference:
    inner_path, inner = _unwrapped(path, row)
    is_wrapped = inner is not row
    trajectory = validate(_Trajectory, document, inner, inner_path)
    inputs = trajectory.inputs or (row.get("inputs") if is_wrapped else None)
    inputs = _one_per_turn(document, (*inner_path, "inputs"), inputs, trajectory)
    results = _one_per_turn(document, (*inner_path, "results"), trajectory.results, trajectory)
    prompt = [_text(state, by_user=True) for state in inputs]
    turns = [
        ReferenceTurn(
            text,
            tuple(ExpectedCall(node) for node in steps if not _is_marker(node)),
            _text(result, by_user=False),
        )
        for text, steps, result in zip(prompt, trajectory.steps, results, strict=True)
    ]
    ignored = list(unknown_keys(trajectory))
    if is_wrapped:
        ignored += [key for key in non_empty_keys(row) if key not in ("inputs", *_WRAPPERS)]
    loaded.ignored.update(key for key in ignored if key != id_key(row))
    loaded.ignored.update(
        f"steps.{node}" for steps in trajectory.steps for node in steps if _is_marker(node)
    )
    return Reference(names.name(path, row, prompt), tuple(turns))


def _one_per_turn(
    document: Document, path: KeyPath, values: Json, trajectory: _Trajectory
) -> list[Json]:
    """The values, which must be as many as there are turns; all `None` if there are no values.
    Raises `ConfigError`.
    """
    if not isinstance(values, list) or not values:
        return [None] * len(trajectory.steps)
    if len(values) != len(trajectory.steps):
        text = (
            f"found {counted(len(values), 'value')}, expected {len(trajectory.steps)}, one for each"
            " list of steps"
        )
        raise ConfigError([document.problem(path, text)])
    return values


def _unwrapped(path: KeyPath, row: Json) -> tuple[KeyPath, Json]:
    if isinstance(row, dict):
        for key in _WRAPPERS:
            if isinstance(row.get(key), dict) and "steps" in row[key]:
                return (*path, key), row[key]
    return path, row


def _is_marker(node: str) -> bool:
    return node.startswith("__") and node.endswith("__")


def _text(state: Json, *, by_user: bool) -> str | None:
    """The last text of the user or the assistant in a state of the graph. The state may be nested
    under the name of a node.
    """
    if isinstance(state, dict) and "messages" not in state and len(state) == 1:
        state = next(iter(state.values()))
    if isinstance(state, dict):
        return last_text(state.get("messages"), by_user=by_user)
    if by_user and isinstance(state, str) and not _is_marker(state):
        return state
    return None

"""Turns the rows of a table of predictions into invocations and references.

The columns are those of an evaluation dataset of Vertex AI. A row with expected columns of its own
is compared with them; otherwise its reference is found by its id, its prompt or its position.
An empty cell means that something was not recorded, never that the agent did nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from pathgauge.collector.core.references.rows import position_name, row_id, rows, text_at
from pathgauge.collector.core.references.versions import version
from pathgauge.collector.core.references.vertex import reference_turn, trajectory_items
from pathgauge.collector.offline.tables.recognition import COLUMN
from pathgauge.scorers.types import Flag, Invocation, Json, Reference, ToolCall

DIALECT = "table"
"""The dialect of invocations that were read from a table."""

_FLAGS: Mapping[Json, bool] = {
    **dict.fromkeys(("0", "0.0", "false"), False),
    **dict.fromkeys(("1", "1.0", "true"), True),
}
"""As text: pandas writes 0.0 and 1.0 if another row has no value."""
_NANOSECONDS = 1_000_000_000


class _Call(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    tool_name: Annotated[str, Field(min_length=1)]
    tool_input: Any = None


@dataclass(slots=True)
class Predictions:
    """The content of one table."""

    file: str
    invocations: list[Invocation] = field(default_factory=list)
    """One for each row, in their order."""
    references: dict[str, Reference] = field(default_factory=dict)
    """Those that the table itself contains, by scenario id."""


def predictions(document: Document) -> Predictions:
    """The invocations and references of a table. Raises `ConfigError` with every problem."""
    found, problems = Predictions(document.file), Problems()
    for index, (path, row) in enumerate(rows(document)):
        with problems:
            if not isinstance(row, dict):
                text = f"found {show_value(row)}, expected a mapping"
                raise ConfigError([document.problem(path, text)])
            _add_row(document, path, index, row, found)
    problems.report()
    return found


def _add_row(
    document: Document, path: KeyPath, index: int, row: Mapping[str, Json], found: Predictions
) -> None:
    scenario = row_id(document, path, row)
    turn = reference_turn(document, path, row, Counter())
    if turn is not None:
        scenario = scenario or position_name(document.file, index)
        known = found.references.get(scenario)
        if known is not None and known.turns != (turn,):
            text = (
                f"found the id {scenario!r} again with another reference (first at"
                f" {known.source}), expected the same reference or another id"
            )
            raise ConfigError([document.problem(path, text)])
        if known is None:
            found.references[scenario] = _reference(document, path, Reference(scenario, (turn,)))
    found.invocations.append(_invocation(document, path, index, row, scenario))


def _reference(document: Document, path: KeyPath, bare: Reference) -> Reference:
    position = document.position(path)
    source = f"{document.file}:{position.line}" if position else document.file
    return Reference(bare.scenario_id, bare.turns, version(bare), source)


def _invocation(
    document: Document,
    path: KeyPath,
    index: int,
    row: Mapping[str, Json],
    scenario: str | None,
) -> Invocation:
    calls = _calls(document, (*path, COLUMN), row.get(COLUMN))
    flags: frozenset[Flag] = frozenset({"no_tool_spans"} if calls is None else ())
    seconds = _seconds(document, (*path, "latency_in_seconds"), row.get("latency_in_seconds"))
    return Invocation(
        trace_id=f"{document.file} row {index + 1}",
        span_id="",
        dialect=DIALECT,
        scenario_id=scenario,
        user_input=text_at(document, (*path, "prompt"), row.get("prompt")),
        tool_calls=calls or (),
        final_response=_response(document, (*path, "response"), row.get("response")),
        error=_failure(document, (*path, "failure"), row.get("failure")),
        start_ns=None if seconds is None else 0,
        end_ns=None if seconds is None else round(seconds * _NANOSECONDS),
        flags=flags,
    )


def _calls(document: Document, path: KeyPath, value: Json) -> tuple[ToolCall, ...] | None:
    """The calls in the cell; `None` if it is empty."""
    items = trajectory_items(document, path, value)
    if items is None:
        return None
    problems, calls = Problems(), []
    for item_path, item in items:
        with problems:
            written = {"tool_name": item} if isinstance(item, str) else item
            call = validate(_Call, document, written, item_path)
            arguments = _arguments(document, (*item_path, "tool_input"), call.tool_input)
            calls.append(ToolCall(call.tool_name, arguments))
    problems.report()
    return tuple(calls)


def _arguments(document: Document, path: KeyPath, written: Json) -> Mapping[str, Json] | str | None:
    """The arguments. Text that is no JSON object is kept: a model may write such arguments."""
    if written is None or isinstance(written, dict):
        return written
    if not isinstance(written, str):
        text = f"found {show_value(written)}, expected a mapping"
        raise ConfigError([document.problem(path, text)])
    try:
        parsed = embedded.read(document, path, written)
    except ConfigError:
        return written
    return parsed if isinstance(parsed, dict) else written


def _response(document: Document, path: KeyPath, value: Json) -> str | None:
    """The response. An empty text is an answer, `null` and an empty cell in CSV are none."""
    return value if value == "" else text_at(document, path, value)


def _seconds(document: Document, path: KeyPath, value: Json) -> float | None:
    if value in (None, ""):
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        text = f"found {show_value(value)}, expected a number of seconds"
        raise ConfigError([document.problem(path, text)])
    return seconds


def _failure(document: Document, path: KeyPath, value: Json) -> bool:
    if value in (None, ""):
        return False
    flag = _FLAGS.get(str(value).lower())
    if flag is None:
        text = f"found {show_value(value)}, expected 0 or 1"
        raise ConfigError([document.problem(path, text)])
    return flag

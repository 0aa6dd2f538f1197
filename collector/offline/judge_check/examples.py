"""Labelled examples: a file comes in, what an agent did, what it should have done, and what a
person says of it goes out.

An example is a turn of the native reference format, with what the agent answered and called beside
it. docs/judges.md tells the format.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pathgauge.collector.config.reference_files import read_documents
from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problem, Problems
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.references.native import Expectation, expectation
from pathgauge.collector.core.references.rows import rows
from pathgauge.scorers.authoring.ranges import in_range
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, ToolCall


@dataclass(frozen=True, slots=True)
class Example:
    """What an agent did, and what a person says of it."""

    name: str
    """Its id, else where it stands."""
    actual: Invocation
    expected: ReferenceTurn | None
    label: bool | float
    """Whether it should pass, or the score that it should have."""
    criterion: str | None
    """The only criterion that the label is for; `None`: it is for all."""
    document: Document
    path: KeyPath

    def problem(self, key: str, text: str) -> Problem:
        """A mistake in the value of a key."""
        return self.document.problem((*self.path, key), text)


def _label(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    raise ValueError("true, false or a number")


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1)]
    args: dict[str, Any] | None = None
    result: Any = None
    error: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Json) -> Json:
        return {"name": value} if isinstance(value, str) else value


class _Example(Expectation):
    id: Annotated[str | None, Field(min_length=1)] = None
    response: str | None = None
    tools: list[_Call] | None = None
    tool_schemas: Annotated[dict[str, Any], Field(default_factory=dict)]
    label: Annotated[Any, BeforeValidator(_label)]
    criterion: str | None = None


_NO_EXPECTATION = frozenset(
    {"input", *_Example.model_fields.keys() - Expectation.model_fields.keys()}
)


def read(file: Path) -> tuple[Example, ...]:
    """All examples of a file in YAML, JSON or JSON lines. Raises `ConfigError` with every problem."""
    examples: list[Example] = []
    problems = Problems()
    for document in read_documents(file):
        for path, item in rows(document) if document.data is not None else ():
            with problems:
                examples.append(_example(validate(_Example, document, item, path), document, path))
    if not examples and not problems.found:
        problems.found.append(
            Problem(str(file), None, (), "found an empty file, expected examples")
        )
    problems.report()
    return tuple(examples)


def labelled(examples: tuple[Example, ...], criterion: Criterion) -> tuple[Example, ...]:
    """Those with a label for this criterion. Raises `ConfigError` where their labels are not of one
    kind, or outside of its range.
    """
    meant = tuple(example for example in examples if example.criterion in (None, criterion.name))
    problems: list[Problem] = []
    for example in meant:
        if isinstance(example.label, bool) != isinstance(meant[0].label, bool):
            first = "true or false" if isinstance(meant[0].label, bool) else "a number"
            problems.append(
                example.problem(
                    "label",
                    f"found {_written(example.label)}, expected {first}, as in the first example",
                )
            )
        elif not isinstance(example.label, bool) and not in_range(criterion.scorer, example.label):
            low, high = criterion.scorer.low, criterion.scorer.high
            expected = f"a score that {criterion.name} can give, from {low:g} to {high:g}"
            problems.append(
                example.problem("label", f"found {_written(example.label)}, expected {expected}")
            )
    if problems:
        raise ConfigError(problems)
    return meant


def _written(label: bool | float) -> str:
    return str(label).lower() if isinstance(label, bool) else f"{label:g}"


def _example(written: _Example, document: Document, path: KeyPath) -> Example:
    position = document.position(path)
    place = f"{document.file}:{position.line}" if position is not None else document.file
    return Example(
        written.id or place,
        _actual(written, f"{path[0] if path else 0:032x}"),
        expectation(written) if written.model_fields_set - _NO_EXPECTATION else None,
        written.label,
        written.criterion,
        document,
        path,
    )


def _actual(written: _Example, trace_id: str) -> Invocation:
    calls = [
        ToolCall(call.name, call.args, result=call.result, error=call.error)
        for call in written.tools or ()
    ]
    return Invocation(
        trace_id=trace_id,
        span_id=trace_id[:16],
        dialect="example",
        user_input=written.input,
        tool_calls=tuple(calls),
        final_response=written.response,
        tool_schemas=written.tool_schemas,
        flags=frozenset({"no_tool_spans"} if written.tools is None else ()),
    )

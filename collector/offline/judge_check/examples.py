"""Reads the labelled examples that `pathgauge judge check` asks a judge about.

An example is a turn of the native reference format, plus what the agent answered and called, and a
human label. docs/judges.md describes the format.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pathgauge.collector.config.reference_files import read_documents
from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problem, Problems
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.references.native import expectation
from pathgauge.collector.core.references.native_schema import Expectation
from pathgauge.collector.core.references.rows import rows
from pathgauge.scorers.authoring.ranges import in_range
from pathgauge.scorers.types import Invocation, Json, ModelCall, ReferenceTurn, ToolCall


@dataclass(frozen=True, slots=True)
class Example:
    """What an agent did, what was expected, and a human label."""

    name: str
    """The id, or else the file and line."""
    actual: Invocation
    expected: ReferenceTurn | None
    label: bool | float
    """Whether it should pass, or the score that it should get."""
    criterion: str | None
    """The criterion that the label is for; `None`: for all criteria."""
    document: Document
    path: KeyPath
    before: tuple[Invocation, ...] = ()
    """The earlier turns of the session, for judges of sessions."""

    def problem(self, key: str, text: str) -> Problem:
        """A problem with the value of `key`."""
        return self.document.problem((*self.path, key), text)


def _label(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) <= sys.float_info.max:
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
        if isinstance(value, str):
            return {"name": value}
        return value


class _Turn(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    input: str | None = None
    response: str | None = None
    tools: list[_Call] | None = None
    texts: list[str] | None = None


class _Example(Expectation):
    id: Annotated[str | None, Field(min_length=1)] = None
    before: Annotated[list[_Turn], Field(default_factory=list)]
    response: str | None = None
    tools: list[_Call] | None = None
    texts: list[str] | None = None
    tool_schemas: Annotated[dict[str, Any], Field(default_factory=dict)]
    label: Annotated[Any, BeforeValidator(_label)]
    criterion: str | None = None


_NO_EXPECTATION = frozenset(
    {"input", *_Example.model_fields.keys() - Expectation.model_fields.keys()}
)


def read(file: Path) -> tuple[Example, ...]:
    """Read a file of YAML, JSON or JSON lines. Raises `ConfigError` with every problem."""
    examples: list[Example] = []
    problems = Problems()
    for document in read_documents(file):
        if document.data is None:
            continue
        for path, item in rows(document):
            with problems:
                examples.append(_example(validate(_Example, document, item, path), document, path))
    if not examples and not problems.found:
        text = "found an empty file, expected examples"
        problems.found.append(Problem(str(file), None, (), text))
    problems.report()
    return tuple(examples)


def labelled(examples: tuple[Example, ...], criterion: Criterion) -> tuple[Example, ...]:
    """The examples with a label for this criterion. Raises `ConfigError` when some labels are
    verdicts and others scores, or a score is outside the range of the scorer.
    """
    chosen = tuple(example for example in examples if example.criterion in (None, criterion.name))
    problems: list[Problem] = []
    for example in chosen:
        expected = _expected_label(example, chosen[0], criterion)
        if expected is not None:
            text = f"found {label_text(example.label)}, expected {expected}"
            problems.append(example.problem("label", text))
    if problems:
        raise ConfigError(problems)
    return chosen


def _expected_label(example: Example, first: Example, criterion: Criterion) -> str | None:
    """What the label should have been; `None` when it is correct."""
    label, of_first = example.label, first.label
    if isinstance(label, bool) != isinstance(of_first, bool):
        kind = "true or false" if isinstance(of_first, bool) else "a number"
        return f"{kind}, as in the first example"
    if isinstance(label, bool) or in_range(criterion.scorer, label):
        return None
    low, high = criterion.scorer.low, criterion.scorer.high
    return f"a score that {criterion.name} can give, from {low:g} to {high:g}"


def label_text(label: bool | float) -> str:
    """A label as it is written in YAML."""
    if isinstance(label, bool):
        return str(label).lower()
    return f"{label:g}"


def _example(written: _Example, document: Document, path: KeyPath) -> Example:
    position = document.position(path)
    location = document.file
    if position is not None:
        location = f"{location}:{position.line}"
    expected: ReferenceTurn | None = None
    if written.model_fields_set - _NO_EXPECTATION:
        expected = expectation(written)
    trace_id = f"{path[0] if path else 0:032x}"
    return Example(
        written.id or location,
        replace(_actual(written, trace_id), tool_schemas=written.tool_schemas),
        expected,
        written.label,
        written.criterion,
        document,
        path,
        tuple(_actual(turn, trace_id) for turn in written.before),
    )


def _actual(written: _Example | _Turn, trace_id: str) -> Invocation:
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
        model_calls=tuple(_model_calls(written.texts)),
        final_response=written.response,
        flags=frozenset({"no_tool_spans"} if written.tools is None else ()),
    )


def _model_calls(texts: Iterable[str] | None) -> Iterator[ModelCall]:
    """The calls in which the models said these texts."""
    for number, text in enumerate(texts or (), 1):
        yield ModelCall(f"{number:016x}", text=text)

"""The native reference format: a YAML or JSON `Document` comes in, its `Reference`s go out, each
with its path in the document.

One scenario, or a list of them. The keys of a turn stand in `turns`, or beside `scenario` where
there is only one turn. docs/references.md tells the format to its writers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails

from pathgauge.collector.core.documents import Document, KeyPath, Problems
from pathgauge.collector.core.documents.quantities import Duration
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.loaded import Contents
from pathgauge.collector.core.references.parallel_groups import joined
from pathgauge.collector.core.references.rows import rows
from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

KEYS = ("scenario",)
"""The keys that tell a scenario from other formats."""


def _not_null(value: Json) -> Json:
    """Whether null means nothing or everything, readers would disagree."""
    if value is None:
        raise ValueError("a value; leave the key out to say nothing")
    return value


def _with_matchers(args: dict[str, Json]) -> dict[str, Json]:
    """The arguments with matchers in place of what stands for them; a mistake is reported at its
    own place.
    """
    try:
        read = matchers.read(args)
    except ValueError as error:
        path, found, error = _mistake(args, error)
        details = InitErrorDetails(type="value_error", loc=path, input=found, ctx={"error": error})
        raise ValidationError.from_exception_data("args", [details]) from None
    if not isinstance(read, dict):
        raise ValueError(
            "found a matcher in place of all arguments, expected arguments, whose values may be"
            " matchers"
        )
    return read


def _mistake(
    value: Json, error: ValueError, path: KeyPath = ()
) -> tuple[KeyPath, Json, ValueError]:
    """Where the innermost value stands that cannot be read, the value, and why not."""
    inner = (
        enumerate(value)
        if isinstance(value, list)
        else value.items()
        if not any(key.startswith("$") for key in value)
        else ()
    )
    for key, item in inner:
        try:
            matchers.read(item)
        except ValueError as found:
            return _mistake(item, found, (*path, key))
    return path, value, error


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Call(_Part):
    name: Annotated[str, Field(min_length=1)]
    args: Annotated[
        dict[str, Any] | None, BeforeValidator(_not_null), AfterValidator(_with_matchers)
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Json) -> Json:
        return {"name": value} if isinstance(value, str) else value


class _ExpectedCall(_Call):
    optional: bool = False


class _Step(_ExpectedCall):
    """A call, or several in any order, which need no name."""

    any_order: Annotated[
        list[_ExpectedCall] | None, Field(min_length=1), BeforeValidator(_not_null)
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _any_order_alone(cls, value: Json) -> Json:
        if not isinstance(value, dict) or "any_order" not in value:
            return value
        if len(value) > 1:
            raise ValueError(
                "found any_order and other keys, expected it alone; the others belong into its"
                " calls"
            )
        return {"name": "any_order", **value}


_Steps = list[_Step]


class Expectation(_Part):
    """What one agent should do in a turn."""

    input: str | None = None
    expected_tools: Annotated[_Steps | None, BeforeValidator(_not_null)] = None
    expected_response: str | None = None
    alternatives: list[_Steps] = []
    forbidden_tools: list[_Call] = []
    response_contains: list[Annotated[str, Field(min_length=1)]] = []
    expected_agent: Annotated[str | None, Field(min_length=1), BeforeValidator(_not_null)] = None
    escalate: Annotated[bool | None, BeforeValidator(_not_null)] = None

    @model_validator(mode="after")
    def _alternatives_to_something(self) -> Expectation:
        if self.alternatives and self.expected_tools is None:
            raise ValueError(
                "found alternatives without expected_tools, expected the first of them there"
            )
        return self


class _Turn(Expectation):
    agents: dict[str, Expectation] = {}


class _Scenario(_Turn):
    scenario: Annotated[str, Field(min_length=1)]
    criteria: dict[str, Any] = {}
    thresholds: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = {}
    expected_interval: Annotated[
        Annotated[Duration, Field(gt=0)] | None, BeforeValidator(_not_null)
    ] = None
    turns: Annotated[list[_Turn] | None, Field(min_length=1), BeforeValidator(_not_null)] = None

    @model_validator(mode="after")
    def _turns_or_one_turn(self) -> _Scenario:
        both = [key for key in _Turn.model_fields if key in self.model_fields_set]
        if self.turns is not None and both:
            raise ValueError(
                f"found turns and {', '.join(both)}, expected either (the latter inside a turn)"
            )
        if (
            self.turns is None
            and not both
            and not self.criteria
            and not self.thresholds
            and self.expected_interval is None
        ):
            raise ValueError(
                "found the scenario alone, expected turns, or the keys of a turn, such as"
                " expected_tools"
            )
        return self

    @model_validator(mode="after")
    def _each_criterion_once(self) -> _Scenario:
        twice = [name for name in self.thresholds if name in self.criteria]
        if twice:
            raise ValueError(
                f"found {', '.join(twice)} in criteria and in thresholds, expected it in one of"
                " them"
            )
        return self


def recognises(data: Json) -> bool:
    """Whether the data is a scenario or a list that has one."""
    candidates = data if isinstance(data, list) else [data]
    return any(isinstance(candidate, dict) and KEYS[0] in candidate for candidate in candidates)


def load(document: Document) -> Contents:
    """The references of one document. Raises `ConfigError` with every problem."""
    contents, problems = Contents(_with_criteria(document)), Problems()
    for path, item in rows(document):
        with problems:
            contents.add(path, _reference(validate(_Scenario, document, item, path)))
    problems.report()
    return contents


def _with_criteria(document: Document) -> Document:
    """The document with thresholds where criteria are looked for, so that a mistake in one is found
    in its line.
    """
    values, keys = [
        {
            (*path[:-2], "criteria", path[-1]): position
            for path, position in places.items()
            if path[-2:-1] == ("thresholds",)
        }
        for places in (document.values, document.keys)
    ]
    return replace(document, values={**document.values, **values}, keys={**document.keys, **keys})


def _reference(scenario: _Scenario) -> Reference:
    turns = scenario.turns if scenario.turns is not None else [scenario]
    criteria = {**scenario.criteria, **scenario.thresholds}
    return Reference(
        scenario.scenario,
        tuple(_turn(turn) for turn in turns),
        criteria=criteria,
        expected_interval=scenario.expected_interval,
    )


def _turn(turn: _Turn) -> ReferenceTurn:
    return replace(
        expectation(turn), agents={name: expectation(agent) for name, agent in turn.agents.items()}
    )


def expectation(part: Expectation) -> ReferenceTurn:
    """What is expected, as scorers know it."""
    return ReferenceTurn(
        user_input=part.input,
        tool_calls=None if part.expected_tools is None else _trajectory(part.expected_tools),
        response=part.expected_response,
        alternatives=tuple(_trajectory(steps) for steps in part.alternatives),
        forbidden=tuple(ExpectedCall(call.name, call.args) for call in part.forbidden_tools),
        response_contains=tuple(part.response_contains),
        expected_agent=part.expected_agent,
        escalate=part.escalate,
    )


def _trajectory(steps: _Steps) -> tuple[ExpectedCall, ...]:
    return joined([list(_calls(step)) for step in steps])


def _calls(step: _Step) -> Iterator[ExpectedCall]:
    for call in [step] if step.any_order is None else step.any_order:
        yield ExpectedCall(call.name, call.args, call.optional)

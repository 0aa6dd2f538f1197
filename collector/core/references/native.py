"""The native reference format, in YAML or JSON: one scenario or a list of scenarios.

A conversation lists its turns under `turns`; a scenario with a single turn may have the keys of the
turn beside `scenario`. docs/references.md documents the format for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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

from pathgauge.collector.core.documents import Document, KeyPath, Position, Problems
from pathgauge.collector.core.documents.quantities import Duration
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.parallel_groups import joined
from pathgauge.collector.core.references.rows import mappings, rows
from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn


def _not_null(value: Json) -> Json:
    """Refuse null: it could mean both "no expectation" and "nothing is allowed"."""
    if value is None:
        raise ValueError("a value; leave the key out to say nothing")
    return value


def _with_matchers(args: dict[str, Json]) -> dict[str, Json]:
    """The arguments with their matchers parsed. A mistake is reported at its own path."""
    try:
        read = matchers.read(args)
    except ValueError as error:
        path, found, error = _innermost_mistake(args, error)
        details = InitErrorDetails(type="value_error", loc=path, input=found, ctx={"error": error})
        raise ValidationError.from_exception_data("args", [details]) from None
    if not isinstance(read, dict):
        raise ValueError(
            "found a matcher in place of all arguments, expected arguments, whose values may be"
            " matchers"
        )
    return read


def _innermost_mistake(
    value: Json, error: ValueError, path: KeyPath = ()
) -> tuple[KeyPath, Json, ValueError]:
    """The innermost value that cannot be parsed: its path, the value and its error."""
    for key, item in _items(value):
        try:
            matchers.read(item)
        except ValueError as inner_error:
            return _innermost_mistake(item, inner_error, (*path, key))
    return path, value, error


def _items(value: Json) -> Iterable[tuple[str | int, Json]]:
    """The items of a list or a mapping; none of a matcher, which is reported as a whole."""
    if isinstance(value, list):
        return enumerate(value)
    if any(key.startswith("$") for key in value):
        return ()
    items: Iterable[tuple[str | int, Json]] = value.items()
    return items


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
    """A call, or several calls in any order, which then need no name."""

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
        has_content = (
            self.turns is not None
            or both
            or self.criteria
            or self.thresholds
            or self.expected_interval is not None
        )
        if not has_content:
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
    """Whether the data is a scenario or a list with a scenario in it."""
    return any("scenario" in row for row in mappings(data))


def load(document: Document) -> LoadedReferences:
    """The references of one document. Raises `ConfigError` with every problem."""
    loaded, problems = LoadedReferences(_with_positions_of_criteria(document)), Problems()
    for path, item in rows(document):
        with problems:
            loaded.add(path, _reference(validate(_Scenario, document, item, path)))
    problems.report()
    return loaded


FORMAT = Format("pathgauge", ("scenario",), recognises, load)


def _with_positions_of_criteria(document: Document) -> Document:
    """The document with the positions of `thresholds` also under `criteria`, where mistakes in
    criteria are reported.
    """
    return replace(
        document,
        values={**document.values, **_thresholds_as_criteria(document.values)},
        keys={**document.keys, **_thresholds_as_criteria(document.keys)},
    )


def _thresholds_as_criteria(positions: Mapping[KeyPath, Position]) -> dict[KeyPath, Position]:
    return {
        (*path[:-2], "criteria", path[-1]): position
        for path, position in positions.items()
        if path[-2:-1] == ("thresholds",)
    }


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
    """The expectation as scorers take it."""
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

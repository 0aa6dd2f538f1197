"""What a native reference file may contain, as pydantic models. docs/references.md documents it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal

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

from pathgauge.collector.core.documents import MAX_PROBLEMS, KeyPath
from pathgauge.collector.core.documents.quantities import Duration
from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import Json


def _not_null(value: Json) -> Json:
    """Refuse null: it could mean both "no expectation" and "nothing is allowed"."""
    if value is None:
        raise ValueError("a value; leave the key out to say nothing")
    return value


def _with_matchers(args: dict[str, Json]) -> dict[str, Json]:
    """The arguments with their matchers parsed. Each mistake is reported at its own path."""
    mistakes = [
        InitErrorDetails(type="value_error", loc=path, input=found, ctx={"error": error})
        for path, found, error in islice(_mistakes(args), MAX_PROBLEMS + 1)
    ]
    if mistakes:
        raise ValidationError.from_exception_data("args", mistakes)
    read = matchers.read(args)
    if not isinstance(read, dict):
        raise ValueError(
            "found a matcher in place of all arguments, expected arguments, whose values may be"
            " matchers"
        )
    return read


def _mistakes(value: Json, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Json, ValueError]]:
    """Every matcher that cannot be parsed, with its path. A matcher is reported as a whole."""
    if isinstance(value, dict) and any(key.startswith("$") for key in value):
        try:
            matchers.read(value)
        except ValueError as error:
            yield path, value, error
        return
    items = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        if isinstance(item, dict | list):
            yield from _mistakes(item, (*path, key))


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


class NativeCall(_Call):
    """An expected call: its name alone, or a mapping."""

    optional: bool = False


class Step(NativeCall):
    """A call, or several calls in any order, which then need no name."""

    any_order: Annotated[
        list[NativeCall] | None, Field(min_length=1), BeforeValidator(_not_null)
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


Steps = list[Step]
"""A trajectory."""


class _Rubric(_Part):
    text: Annotated[str, Field(min_length=1)]
    id: str = ""
    description: str = ""
    of: Literal["response", "tool_use"] = "response"

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, value: Json) -> Json:
        return {"text": value} if isinstance(value, str) else value


class Expectation(_Part):
    """What one agent should do in a turn."""

    input: str | None = None
    expected_tools: Annotated[Steps | None, BeforeValidator(_not_null)] = None
    expected_response: str | None = None
    alternatives: list[Steps] = []
    forbidden_tools: list[_Call] = []
    response_contains: list[Annotated[str, Field(min_length=1)]] = []
    expected_agent: Annotated[str | None, Field(min_length=1), BeforeValidator(_not_null)] = None
    escalate: Annotated[bool | None, BeforeValidator(_not_null)] = None
    rubrics: list[_Rubric] = []

    @model_validator(mode="after")
    def _alternatives_to_something(self) -> Expectation:
        if self.alternatives and self.expected_tools is None:
            raise ValueError(
                "found alternatives without expected_tools, expected the first of them there"
            )
        return self


class Turn(Expectation):
    """One turn of a conversation."""

    agents: dict[str, Expectation] = {}


class Scenario(Turn):
    """A scenario with its turns, or with the keys of its only turn."""

    scenario: Annotated[str, Field(min_length=1)]
    criteria: dict[str, Any] = {}
    thresholds: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = {}
    expected_interval: Annotated[
        Annotated[Duration, Field(gt=0)] | None, BeforeValidator(_not_null)
    ] = None
    required: bool = False
    turns: Annotated[list[Turn] | None, Field(min_length=1), BeforeValidator(_not_null)] = None

    @model_validator(mode="after")
    def _turns_or_one_turn(self) -> Scenario:
        both = [key for key in Turn.model_fields if key in self.model_fields_set]
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
            or self.required
        )
        if not has_content:
            raise ValueError(
                "found the scenario alone, expected turns, or the keys of a turn, such as"
                " expected_tools"
            )
        return self

    @model_validator(mode="after")
    def _each_criterion_once(self) -> Scenario:
        twice = [name for name in self.thresholds if name in self.criteria]
        if twice:
            raise ValueError(
                f"found {', '.join(twice)} in criteria and in thresholds, expected it in one of"
                " them"
            )
        return self

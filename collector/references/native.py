"""The native reference format: a YAML or JSON `Document` comes in, its `Reference`s go out, each with its path in the document.

One scenario, or a list of them. The keys of a turn stand in `turns`, or beside `scenario` where there is only one turn.
docs/references.md tells the format to its writers.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from collector.documents import Document, KeyPath, Problems
from collector.documents.validation import validate
from scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

KEYS = ("scenario",)
"""The keys that tell a scenario from other formats."""


def _not_null(value: Json) -> Json:
    """Whether null means nothing or everything, readers would disagree."""
    if value is None:
        raise ValueError("a value; leave the key out to say nothing")
    return value


def _call(value: Json) -> Json:
    return {"name": value} if isinstance(value, str) else value


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Call(_Part):
    name: Annotated[str, Field(min_length=1)]
    args: Annotated[dict[str, Any] | None, BeforeValidator(_not_null)] = None


class _Turn(_Part):
    input: str | None = None
    expected_tools: Annotated[list[Annotated[_Call, BeforeValidator(_call)]] | None, BeforeValidator(_not_null)] = None
    expected_response: str | None = None


class _Scenario(_Turn):
    scenario: Annotated[str, Field(min_length=1)]
    criteria: dict[str, Any] = {}
    turns: Annotated[list[_Turn] | None, Field(min_length=1), BeforeValidator(_not_null)] = None

    @model_validator(mode="after")
    def _turns_or_one_turn(self) -> _Scenario:
        both = [key for key in _Turn.model_fields if key in self.model_fields_set]
        if self.turns is not None and both:
            raise ValueError(f"found turns and {', '.join(both)}, expected either (the latter inside a turn)")
        if self.turns is None and not both and not self.criteria:
            raise ValueError(f"found the scenario alone, expected turns, or {', '.join(_Turn.model_fields)}")
        return self


def recognises(data: Json) -> bool:
    """Whether the data is a scenario or a list that has one."""
    candidates = data if isinstance(data, list) else [data]
    return any(isinstance(candidate, dict) and KEYS[0] in candidate for candidate in candidates)


def load(document: Document) -> list[tuple[KeyPath, Reference]]:
    """The references of one document. Raises `ConfigError` with every problem."""
    data = document.data
    scenarios: list[tuple[KeyPath, Json]] = (
        [((index,), item) for index, item in enumerate(data)] if isinstance(data, list) else [((), data)]
    )
    loaded: list[tuple[KeyPath, Reference]] = []
    problems = Problems()
    for path, item in scenarios:
        with problems:
            loaded.append((path, _reference(validate(_Scenario, document, item, path))))
    problems.report()
    return loaded


def _reference(scenario: _Scenario) -> Reference:
    turns = scenario.turns if scenario.turns is not None else [scenario]
    return Reference(scenario.scenario, tuple(_turn(turn) for turn in turns), criteria=scenario.criteria)


def _turn(turn: _Turn) -> ReferenceTurn:
    calls = None if turn.expected_tools is None else tuple(ExpectedCall(call.name, call.args) for call in turn.expected_tools)
    return ReferenceTurn(turn.input, calls, turn.expected_response)

"""The format for evalsets of Google's Agent Development Kit (`*.evalset.json`, `*.test.json`).

Keys may be in snake_case (adk-python) or camelCase (ADK for TypeScript). Each case becomes a
reference with its `eval_id` as scenario id; several invocations make a conversation. A case with a
simulated user is left out with a note, because it contains nothing to compare with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pathgauge.collector.core.documents import ConfigError, Document, Problems, show_value
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.ignored_keys import unknown_keys
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric

_KEYS = ("eval_cases", "evalCases")
_SCENARIOS = ("conversation_scenario", "conversationScenario")
_MAX_SHOWN_CASES = 10
RUBRIC_TYPES: Mapping[Literal["response", "tool_use"], str] = {
    "response": "FINAL_RESPONSE_QUALITY",
    "tool_use": "TOOL_USE_QUALITY",
}
"""ADK's type of the rubrics that our judges use. ADK's use no rubrics of another type, either."""


class _Part(BaseModel):
    """Accepts every key in both casings, and unknown keys, which newer versions of ADK may add."""

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        alias_generator=AliasGenerator(
            validation_alias=lambda name: AliasChoices(name, to_camel(name))
        ),
    )


class _FunctionCall(_Part):
    name: Annotated[str, Field(min_length=1)]
    args: dict[str, Any] | None = None


class _ContentPart(_Part):
    text: str | None = None
    thought: bool | None = None
    function_call: _FunctionCall | None = None


class _Content(_Part):
    parts: list[_ContentPart] | None = None


class _Event(_Part):
    content: _Content | None = None


class _IntermediateData(_Part):
    tool_uses: list[_FunctionCall] | None = None
    invocation_events: list[_Event] | None = None


class _RubricContent(_Part):
    text_property: Annotated[str, Field(min_length=1)]


class _Rubric(_Part):
    rubric_id: str
    rubric_content: _RubricContent
    description: str | None = None
    type: str | None = None


class _Invocation(_Part):
    user_content: _Content
    final_response: _Content | None = None
    intermediate_data: _IntermediateData | None = None
    rubrics: list[_Rubric] | None = None


class _Case(_Part):
    eval_id: Annotated[str, Field(min_length=1)]
    conversation: Annotated[list[_Invocation], Field(min_length=1)]
    rubrics: list[_Rubric] | None = None


def recognises(data: Json) -> bool:
    """Whether the data is an evalset."""
    return isinstance(data, dict) and any(key in data for key in _KEYS)


def load(document: Document) -> LoadedReferences:
    """The references of one evalset. Raises `ConfigError` with every problem."""
    key = next(key for key in _KEYS if key in document.data)
    cases = document.data[key]
    if not isinstance(cases, list):
        raise ConfigError([document.problem((key,), f"found {show_value(cases)}, expected a list")])
    loaded, problems = LoadedReferences(document), Problems()
    simulated: list[str] = []
    unused: Counter[str] = Counter()
    for index, item in enumerate(cases):
        if _has_simulated_user(item):
            simulated.append(str(item.get("eval_id", item.get("evalId"))))
            continue
        with problems:
            case = validate(_Case, document, item, (key, index))
            loaded.add((key, index), _reference(case))
            unused.update(_unused_rubrics(case))
            loaded.ignored.update(unknown_keys(case))
    problems.report()
    if simulated:
        loaded.notes.append(_left_out(simulated))
    if unused:
        found = ", ".join(f"{kind} ({count})" for kind, count in sorted(unused.items()))
        loaded.notes.append(
            f"rubrics of a type that no criterion uses: {found}; the types are"
            f" {' and '.join(RUBRIC_TYPES.values())}"
        )
    return loaded


FORMAT = Format("ADK evalset", _KEYS, recognises, load, before=("pathgauge",))


def _has_simulated_user(case: Json) -> bool:
    if not isinstance(case, dict) or case.get("conversation") is not None:
        return False
    return any(case.get(key) is not None for key in _SCENARIOS)


def _left_out(cases: list[str]) -> str:
    shown = ", ".join(cases[:_MAX_SHOWN_CASES])
    more = f" and {len(cases) - _MAX_SHOWN_CASES} more" if len(cases) > _MAX_SHOWN_CASES else ""
    return (
        f"cases with a simulated user, left out because they have no conversation to compare with:"
        f" {len(cases)} ({shown}{more})"
    )


def _reference(case: _Case) -> Reference:
    common = case.rubrics or []
    return Reference(case.eval_id, tuple(_turn(one, common) for one in case.conversation))


def _turn(invocation: _Invocation, common: list[_Rubric]) -> ReferenceTurn:
    return ReferenceTurn(
        _text(invocation.user_content),
        _tool_calls(invocation.intermediate_data),
        _text(invocation.final_response),
        rubrics=tuple(_rubrics([*common, *(invocation.rubrics or [])])),
    )


def _rubrics(rubrics: list[_Rubric]) -> Iterator[TurnRubric]:
    for rubric in rubrics:
        for aspect, kind in RUBRIC_TYPES.items():
            if (rubric.type or "").upper() == kind:
                text = rubric.rubric_content.text_property
                yield TurnRubric(text, rubric.rubric_id, rubric.description or "", aspect)


def _unused_rubrics(case: _Case) -> Iterator[str]:
    """The types of the rubrics that are not used."""
    lists = [case.rubrics, *(one.rubrics for one in case.conversation)]
    for rubrics in lists:
        for rubric in rubrics or []:
            if (rubric.type or "").upper() not in RUBRIC_TYPES.values():
                yield rubric.type or "no type"


def _text(content: _Content | None) -> str | None:
    """The text parts, one per line, without the model's thoughts; `None` if there are none."""
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought) or None


def _tool_calls(data: _IntermediateData | None) -> tuple[ExpectedCall, ...] | None:
    """The expected calls; `None`, which means any calls, if there is no intermediate data."""
    if data is None:
        return None
    calls = data.tool_uses
    if calls is None:
        calls = _calls_in_events(data.invocation_events or [])
    return tuple(ExpectedCall(call.name, call.args) for call in calls)


def _calls_in_events(events: list[_Event]) -> list[_FunctionCall]:
    parts = (part for event in events if event.content for part in event.content.parts or [])
    return [part.function_call for part in parts if part.function_call]

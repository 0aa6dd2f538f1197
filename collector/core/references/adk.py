"""The format for evalsets of Google's Agent Development Kit (`*.evalset.json`, `*.test.json`).

Keys may be in snake_case (adk-python) or camelCase (ADK for TypeScript). Each case becomes a
reference with its `eval_id` as scenario id; several invocations make a conversation. A case with a
simulated user is refused, because it contains nothing to compare with.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problems, show_value
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.ignored_keys import unknown_keys
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

_KEYS = ("eval_cases", "evalCases")


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


class _Invocation(_Part):
    user_content: _Content
    final_response: _Content | None = None
    intermediate_data: _IntermediateData | None = None


class _Case(_Part):
    eval_id: Annotated[str, Field(min_length=1)]
    conversation: Annotated[list[_Invocation], Field(min_length=1)]


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
    for index, item in enumerate(cases):
        with problems:
            _refuse_simulated_user(document, (key, index), item)
            case = validate(_Case, document, item, (key, index))
            loaded.add((key, index), _reference(case))
            loaded.ignored.update(unknown_keys(case))
    problems.report()
    return loaded


FORMAT = Format("ADK evalset", _KEYS, recognises, load, before=("pathgauge",))


def _refuse_simulated_user(document: Document, path: KeyPath, case: Json) -> None:
    if not isinstance(case, dict):
        return
    for key in ("conversation_scenario", "conversationScenario"):
        if case.get(key) is not None:
            name = case.get("eval_id", case.get("evalId"))
            text = (
                f"found a simulated user (case {name!r}), expected a conversation to compare with"
            )
            raise ConfigError([document.problem((*path, key), text, of_key=True)])


def _reference(case: _Case) -> Reference:
    return Reference(case.eval_id, tuple(_turn(invocation) for invocation in case.conversation))


def _turn(invocation: _Invocation) -> ReferenceTurn:
    return ReferenceTurn(
        _text(invocation.user_content),
        _tool_calls(invocation.intermediate_data),
        _text(invocation.final_response),
    )


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

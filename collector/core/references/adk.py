"""ADK evalsets (`*.evalset.json`, `*.test.json`): a `Document` comes in, one `Reference` a case
goes out, with its path in the document.

Keys may be in snake_case (adk-python) or camelCase (ADK for TypeScript); keys that are not needed
here are counted. The scenario id is the `eval_id`; several invocations make a conversation. A case
for a simulated user has nothing to compare with and is refused.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, Problems, show_value
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.loaded import Contents, unread
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

KEYS = ("eval_cases", "evalCases")
"""The key that tells an evalset from other formats, in both casings."""


class _Part(BaseModel):
    """Accepts each key in both casings, and keys that newer versions of ADK may have."""

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
    return isinstance(data, dict) and any(key in data for key in KEYS)


def load(document: Document) -> Contents:
    """The references of one evalset. Raises `ConfigError` with every problem."""
    key = next(key for key in KEYS if key in document.data)
    cases = document.data[key]
    if not isinstance(cases, list):
        raise ConfigError([document.problem((key,), f"found {show_value(cases)}, expected a list")])
    contents, problems = Contents(document), Problems()
    for index, item in enumerate(cases):
        with problems:
            _refuse_simulated_user(document, (key, index), item)
            case = validate(_Case, document, item, (key, index))
            contents.add((key, index), _reference(case))
            contents.ignored.update(unread(case))
    problems.report()
    return contents


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
    """The text parts, a line each, without the model's thoughts; `None` when there are none."""
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought) or None


def _tool_calls(data: _IntermediateData | None) -> tuple[ExpectedCall, ...] | None:
    """`None` when the evalset has no intermediate data: it says nothing about tools then."""
    if data is None:
        return None
    calls = (
        data.tool_uses
        if data.tool_uses is not None
        else _calls_of_events(data.invocation_events or [])
    )
    return tuple(ExpectedCall(call.name, call.args) for call in calls)


def _calls_of_events(events: list[_Event]) -> list[_FunctionCall]:
    parts = (part for event in events if event.content for part in event.content.parts or [])
    return [part.function_call for part in parts if part.function_call]

"""Turns one invocation into the turn of a reference that expects the same behaviour.

Calls that one message of a model asked for become a parallel group, so their order is free.
"""

from __future__ import annotations

from dataclasses import dataclass

from pathgauge.collector.core.references.parallel_groups import joined, steps
from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, ToolCall

_MAX_LEVELS = 50
"""Arguments nested deeper are left out: a reference file may hold fewer levels than telemetry."""


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What is recorded."""

    scenario: str | None = None
    """The scenario of all invocations, instead of their own."""
    arguments: bool = True
    response: bool = True
    failed: bool = False
    """Whether failed invocations are recorded; otherwise they are an error."""
    alternatives: bool = False
    """Whether another trajectory of a scenario becomes an alternative; otherwise it is left out."""


def recorded_turn(
    invocation: Invocation, options: RecordOptions
) -> tuple[ReferenceTurn, list[str]]:
    """The expected turn, and notes on what could not be recorded."""
    notes: list[str] = []
    unknown = tools_unknown(invocation)
    calls = None
    if unknown:
        notes.append(f"no tool calls are expected or forbidden: {unknown.explanation}")
    else:
        expected = (_expected(call, options) for call in invocation.tool_calls)
        calls = joined(steps(expected))
    if options.arguments:
        without = [call.name for call in calls or () if call.arguments is None]
        if without:
            notes.append(
                f"any arguments are accepted for {', '.join(without)}: they were not captured, or"
                " are not plain JSON"
            )
    response = None
    if options.response:
        response = _encodable(invocation.final_response)
        if not invocation.final_response:
            notes.append("no response was captured, so none is expected")
    return ReferenceTurn(_encodable(invocation.user_input), calls, response), notes


def _expected(call: ToolCall, options: RecordOptions) -> ExpectedCall:
    if options.arguments and isinstance(call.arguments, dict) and _is_plain(call.arguments):
        return ExpectedCall(call.name, call.arguments, group=call.group)
    return ExpectedCall(call.name, group=call.group)


def _encodable(text: str | None) -> str | None:
    """Text without lone surrogates, which no file can hold; `None` when it is empty or unknown."""
    return text.encode("utf-8", "replace").decode() if text else None


def _is_plain(value: Json, level: int = 0) -> bool:
    """Whether a reference file can hold the value. Arguments decoded from a Python `repr` may be
    more than JSON.
    """
    match value:
        case None | bool() | int() | float():
            return True
        case str():
            return not value or _encodable(value) == value
        case dict():
            return level < _MAX_LEVELS and all(
                isinstance(key, str) and _is_plain(key) and _is_plain(item, level + 1)
                for key, item in value.items()
            )
        case list():
            return level < _MAX_LEVELS and all(_is_plain(item, level + 1) for item in value)
    return False

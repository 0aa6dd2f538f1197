"""Converts an invocation and its reference turn into the inputs of other evaluation tools.

- `instance`: a row of Vertex AI, with `predicted_trajectory` and `reference_trajectory`,
- `result` and `scenario`: the result of an agent, with `messages` and `tool_calls`, and the test
  case that it ran,
- `ctx`: the context of a pydantic-evals evaluator, with `inputs`, `output` and `expected_output`,
- `invocation` and `turn`: the values of `pathgauge.scorers.types` themselves.

Reading an unknown entry raises `NotKnownError`, see `known.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, get_args

from pathgauge.scorers.adapters.known import Known, KnownAttributes
from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.matching.matchers import holds_matcher, written
from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, ToolCall

Shape = Literal[
    "instance", "result", "results", "scenario", "scenarios", "ctx", "invocation", "turn"
]
"""What a parameter receives. The plurals are lists of one item."""
SHAPES: tuple[Shape, ...] = get_args(Shape)

Entries = Mapping[str, Any]


def shaped(shape: Shape, actual: Invocation, expected: ReferenceTurn | None, extra: Entries) -> Any:
    """The value for a parameter of this shape; `extra` overrides entries of the scenario."""
    return _MAKERS[shape](actual, expected, extra)


def _instance(actual: Invocation, expected: ReferenceTurn | None) -> Known:
    turn = expected or ReferenceTurn()
    predicted = reference = None
    if not tools_unknown(actual):
        predicted = [
            _trajectory_entry(call.name, arguments(call), "args_not_recorded")
            for call in actual.tool_calls
        ]
    if turn.tool_calls is not None:
        reference = [
            _trajectory_entry(call.name, expected_arguments(call.arguments), "no_reference")
            for call in turn.tool_calls
        ]
    entries = {
        "prompt": actual.user_input,
        "response": actual.final_response,
        "predicted_trajectory": predicted,
        "latency_in_seconds": actual.duration_s,
        "failure": int(actual.error),
        "reference": turn.response,
        "reference_trajectory": reference,
    }
    return Known(entries, _UNKNOWN)


def _result(actual: Invocation) -> Known:
    calls = messages = error = None
    if not tools_unknown(actual):
        calls = [_call_entry(call) for call in actual.tool_calls]
        messages = list(_messages(actual, calls))
    if actual.error:
        error = actual.error_type or "error"
    entries = {
        "messages": messages,
        "tool_calls": calls,
        "all_tool_calls": calls,
        "final_response": actual.final_response,
        "metrics": _metrics(actual),
        "agent": actual.agent,
        "error": error,
    }
    return Known(entries, _UNKNOWN)


def _scenario(expected: ReferenceTurn | None, extra: Entries) -> Known:
    if expected is None:
        return Known(extra, dict.fromkeys([*_TURN, "expected_subagent"], "no_reference"))
    tools = criteria = None
    if expected.tool_calls is not None:
        tools = [call.name for call in expected.tool_calls]
    if expected.response_contains:
        criteria = [{"response_contains": list(expected.response_contains)}]
    entries = {
        "input": expected.user_input,
        "expected_tools": tools,
        "expected_response": expected.response,
        "success_criteria": criteria,
        "should_escalate": expected.escalate,
        "expected_subagent": expected.expected_agent,
    }
    return Known({**entries, **extra}, _TURN)


def _context(actual: Invocation, expected: ReferenceTurn | None) -> KnownAttributes:
    expected_output = metadata = None
    if expected is not None:
        expected_output, metadata = expected.response, _scenario(expected, {})
    entries = {
        "name": actual.scenario_id,
        "inputs": actual.user_input,
        "output": actual.final_response,
        "expected_output": expected_output,
        "metadata": metadata,
        "duration": actual.duration_s,
        "attributes": _result(actual),
        "metrics": _metrics(actual),
    }
    return KnownAttributes(Known(entries, _UNKNOWN))


_MAKERS: Mapping[Shape, Callable[[Invocation, ReferenceTurn | None, Entries], Any]] = {
    "instance": lambda actual, expected, extra: _instance(actual, expected),
    "result": lambda actual, expected, extra: _result(actual),
    "results": lambda actual, expected, extra: [_result(actual)],
    "scenario": lambda actual, expected, extra: _scenario(expected, extra),
    "scenarios": lambda actual, expected, extra: [_scenario(expected, extra)],
    "ctx": lambda actual, expected, extra: _context(actual, expected),
    "invocation": lambda actual, expected, extra: actual,
    "turn": lambda actual, expected, extra: expected,
}

_UNKNOWN: Mapping[str, Reason] = {
    "prompt": "not_applicable",
    "inputs": "not_applicable",
    "response": "response_not_recorded",
    "output": "response_not_recorded",
    "final_response": "response_not_recorded",
    "predicted_trajectory": "tools_not_recorded",
    "messages": "tools_not_recorded",
    "tool_calls": "tools_not_recorded",
    "all_tool_calls": "tools_not_recorded",
    "tool_calls_after_approval": "not_applicable",
    "latency_in_seconds": "duration_not_recorded",
    "duration": "duration_not_recorded",
    "reference": "no_reference",
    "reference_trajectory": "no_reference",
}
"""Why an entry of an `instance`, a `result` or a `ctx` may be unknown."""

_TURN: Mapping[str, Reason] = dict.fromkeys(
    ("input", "expected_tools", "expected_response", "success_criteria", "should_escalate"),
    "no_reference",
)
"""Entries that a reference turn may lack."""

_METRICS: Mapping[str, Reason] = {
    "input_tokens": "tokens_not_recorded",
    "output_tokens": "tokens_not_recorded",
    "total_tokens": "tokens_not_recorded",
    "latency": "duration_not_recorded",
    "tool_calls": "tools_not_recorded",
}


def _metrics(actual: Invocation) -> Known:
    total = None
    if actual.input_tokens is not None and actual.output_tokens is not None:
        total = actual.input_tokens + actual.output_tokens
    entries = {
        "input_tokens": actual.input_tokens,
        "output_tokens": actual.output_tokens,
        "total_tokens": total,
        "latency": actual.duration_s,
        "tool_calls": None if tools_unknown(actual) else len(actual.tool_calls),
    }
    return Known(entries, _METRICS)


def _messages(actual: Invocation, calls: Sequence[Known]) -> Iterator[dict[str, Any]]:
    """Chat messages: that of the user, one of the assistant for each group of calls, each followed
    by the results of the calls, and the final response.
    """
    yield Known({"role": "user", "content": actual.user_input}, {"content": "not_applicable"})
    groups = (
        (index, None) if call.group is None else (None, call.group)
        for index, call in enumerate(actual.tool_calls)
    )
    for _, members in groupby(zip(groups, calls, strict=True), key=lambda member: member[0]):
        requested = [call for _, call in members]
        yield {"role": "assistant", "content": "", "tool_calls": requested}
        for call in requested:
            message = {
                "role": "tool",
                "name": call["name"],
                "tool_call_id": call["id"],
                "content": dict.get(call, "result"),
            }
            yield Known(message, {"content": "results_not_recorded"})
    yield Known(
        {"role": "assistant", "content": actual.final_response},
        {"content": "response_not_recorded"},
    )


def _call_entry(call: ToolCall) -> Known:
    result = structured(call.result)
    if call.result is None and call.error is not None:
        result = {"error": call.error}
    entries = {
        "id": call.id,
        "name": call.name,
        "args": arguments(call),
        "result": result,
        "error": call.error,
        "agent": call.agent,
    }
    return Known(entries, {"args": "args_not_recorded", "result": "results_not_recorded"})


def _trajectory_entry(name: str, arguments: Json, reason: Reason) -> Known:
    return Known({"tool_name": name, "tool_input": arguments}, {"tool_input": reason})


def arguments(call: ToolCall) -> Json:
    """The arguments of a call, parsed if they are JSON text; `None` if they were not recorded."""
    if isinstance(call.arguments, Mapping):
        return dict(call.arguments)
    return structured(call.arguments)


def expected_arguments(arguments: Mapping[str, Json] | None) -> Json:
    """Expected arguments as JSON, with matchers as in a reference file."""
    if arguments is None:
        return None
    if holds_matcher(arguments):
        return written(arguments)
    return dict(arguments)


def structured(value: Json) -> Json:
    """JSON text parsed if it holds an object or a list; any other value unchanged."""
    found = value
    for _ in range(2):  # some instrumentations encode a string that is already JSON
        if not isinstance(found, str):
            break
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return value
    return found if isinstance(found, dict | list) else value

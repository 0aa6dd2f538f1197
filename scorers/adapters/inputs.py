"""An invocation in the shapes that other evaluation tools hand to functions: it and its reference
turn come in, dictionaries go out.

- `instance`: a row of Vertex AI, with `predicted_trajectory` and `reference_trajectory`,
- `result` and `scenario`: what an agent returned, with `messages` and `tool_calls`, and the test
  case that it ran,
- `ctx`: the context of an evaluator of pydantic-evals, with `inputs`, `output` and
  `expected_output`,
- `invocation` and `turn`: the values of `pathgauge.scorers.types` themselves.

What is not known must not be taken for zero or empty: reading it raises `NotKnownError`, whatever
the default of the reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import SimpleNamespace
from typing import Any, Literal, get_args

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.matching.matchers import holds_matcher, written
from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, ToolCall

Shape = Literal[
    "instance", "result", "results", "scenario", "scenarios", "ctx", "invocation", "turn"
]
"""What a parameter receives; the plurals are lists of one."""
SHAPES: tuple[Shape, ...] = get_args(Shape)

Entries = Mapping[str, Any]


class NotKnownError(KeyError):
    """The entry `key` was read, which the telemetry or the reference does not have; `reason` says
    which of them.
    """

    def __init__(self, key: str, reason: Reason) -> None:
        super().__init__(key)
        self.key, self.reason = key, reason


class Known(dict[str, Any]):
    """A dictionary that keeps apart what is not known and what does not exist."""

    def __init__(self, entries: Entries, unknown: Mapping[str, Reason]) -> None:
        """An entry that is `None`, or missing, and has a reason in `unknown` is not known."""
        super().__init__(entries)
        for key in unknown:
            if dict.get(self, key, unknown) is None:
                del self[key]
        self._unknown = unknown

    def __missing__(self, key: str) -> Any:
        if key in self._unknown:
            raise NotKnownError(key, self._unknown[key])
        raise KeyError(key)

    def __eq__(self, other: object) -> bool:
        """Different as soon as something known differs; else nothing can be said while something is
        not known on one side only.
        """
        if not isinstance(other, dict):
            return False
        common = self.keys() & other.keys()
        if any(self[key] != other[key] for key in common):
            return False
        for one, keys in ((self, other.keys() - common), (other, self.keys() - common)):
            for key in keys:
                if not isinstance(one, Known) or key not in one._unknown:
                    return False
                raise NotKnownError(key, one._unknown[key])
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def get(self, key: str, default: Any = None) -> Any:
        """As of any dictionary, but what is not known has no default."""
        return self[key] if key in self or key in self._unknown else default


class Context(SimpleNamespace):
    """The entries of a `Known` as attributes."""

    def __init__(self, known: Known) -> None:
        super().__init__(**known)
        self._known = known

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            self._known.get(name)
        raise AttributeError(f"the context has no {name!r}")


def shaped(shape: Shape, actual: Invocation, expected: ReferenceTurn | None, extra: Entries) -> Any:
    """What a parameter of this shape receives. `extra` goes into the scenario, over what the
    reference says.
    """
    return _MAKERS[shape](actual, expected, extra)


def _instance(actual: Invocation, expected: ReferenceTurn | None) -> Known:
    turn = expected or ReferenceTurn()
    made = (
        None
        if tools_unknown(actual)
        else [_used(call.name, _arguments(call), "args_not_recorded") for call in actual.tool_calls]
    )
    wanted = (
        None
        if turn.tool_calls is None
        else [_used(call.name, _plain(call.arguments), "no_reference") for call in turn.tool_calls]
    )
    entries = {
        "prompt": actual.user_input,
        "response": actual.final_response,
        "predicted_trajectory": made,
        "latency_in_seconds": actual.duration_s,
        "failure": int(actual.error),
        "reference": turn.response,
        "reference_trajectory": wanted,
    }
    return Known(entries, _UNKNOWN)


def _result(actual: Invocation) -> Known:
    calls = None if tools_unknown(actual) else [_called(call) for call in actual.tool_calls]
    entries = {
        "messages": None if calls is None else list(_messages(actual, calls)),
        "tool_calls": calls,
        "all_tool_calls": calls,
        "final_response": actual.final_response,
        "metrics": _metrics(actual),
        "agent": actual.agent,
        "error": (actual.error_type or "error") if actual.error else None,
    }
    return Known(entries, _UNKNOWN)


def _scenario(expected: ReferenceTurn | None, extra: Entries) -> Known:
    if expected is None:
        return Known(extra, dict.fromkeys([*_TURN, "expected_subagent"], "no_reference"))
    told = {
        "input": expected.user_input,
        "expected_tools": None
        if expected.tool_calls is None
        else [call.name for call in expected.tool_calls],
        "expected_response": expected.response,
        "success_criteria": [{"response_contains": list(expected.response_contains)}]
        if expected.response_contains
        else None,
        "should_escalate": expected.escalate,
        "expected_subagent": expected.expected_agent,
    }
    return Known({**told, **extra}, _TURN)


def _context(actual: Invocation, expected: ReferenceTurn | None) -> Context:
    entries = {
        "name": actual.scenario_id,
        "inputs": actual.user_input,
        "output": actual.final_response,
        "expected_output": None if expected is None else expected.response,
        "metadata": None if expected is None else _scenario(expected, {}),
        "duration": actual.duration_s,
        "attributes": _result(actual),
        "metrics": _metrics(actual),
    }
    return Context(Known(entries, _UNKNOWN))


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
"""Why an entry of an `instance`, a `result` or a `ctx` may not be known. A reason is not asked for
where the entry is there.
"""

_TURN: Mapping[str, Reason] = dict.fromkeys(
    ("input", "expected_tools", "expected_response", "success_criteria", "should_escalate"),
    "no_reference",
)
"""Of which a reference turn may say nothing."""

_METRICS: Mapping[str, Reason] = {
    "input_tokens": "tokens_not_recorded",
    "output_tokens": "tokens_not_recorded",
    "total_tokens": "tokens_not_recorded",
    "latency": "duration_not_recorded",
    "tool_calls": "tools_not_recorded",
}


def _metrics(actual: Invocation) -> Known:
    known = actual.input_tokens is not None and actual.output_tokens is not None
    entries = {
        "input_tokens": actual.input_tokens,
        "output_tokens": actual.output_tokens,
        "total_tokens": (actual.input_tokens or 0) + (actual.output_tokens or 0) if known else None,
        "latency": actual.duration_s,
        "tool_calls": None if tools_unknown(actual) else len(actual.tool_calls),
    }
    return Known(entries, _METRICS)


def _messages(actual: Invocation, calls: Sequence[Known]) -> Iterator[dict[str, Any]]:
    """Chat messages: the user's, one of the assistant for each group of calls with their results
    after it, and the answer.
    """
    yield Known({"role": "user", "content": actual.user_input}, {"content": "not_applicable"})
    groups = (
        (index, None) if call.group is None else (None, call.group)
        for index, call in enumerate(actual.tool_calls)
    )
    for _, members in groupby(zip(groups, calls, strict=True), key=lambda member: member[0]):
        asked = [call for _, call in members]
        yield {"role": "assistant", "content": "", "tool_calls": asked}
        for call in asked:
            answer = {
                "role": "tool",
                "name": call["name"],
                "tool_call_id": call["id"],
                "content": dict.get(call, "result"),
            }
            yield Known(answer, {"content": "results_not_recorded"})
    yield Known(
        {"role": "assistant", "content": actual.final_response},
        {"content": "response_not_recorded"},
    )


def _called(call: ToolCall) -> Known:
    result = (
        {"error": call.error}
        if call.result is None and call.error is not None
        else _structured(call.result)
    )
    entries = {
        "id": call.id,
        "name": call.name,
        "args": _arguments(call),
        "result": result,
        "error": call.error,
        "agent": call.agent,
    }
    return Known(entries, {"args": "args_not_recorded", "result": "results_not_recorded"})


def _used(name: str, arguments: Json, reason: Reason) -> Known:
    return Known({"tool_name": name, "tool_input": arguments}, {"tool_input": reason})


def _arguments(call: ToolCall) -> Json:
    return (
        dict(call.arguments) if isinstance(call.arguments, Mapping) else _structured(call.arguments)
    )


def _plain(arguments: Mapping[str, Json] | None) -> Json:
    """Expected arguments as JSON; matchers as a reference file writes them."""
    if arguments is None:
        return None
    return written(arguments) if holds_matcher(arguments) else dict(arguments)


def _structured(value: Json) -> Json:
    """JSON text as what it says when that is an object or a list; anything else as it is."""
    found = value
    for _ in range(2):  # some instrumentations encode a string that already is JSON
        if not isinstance(found, str):
            break
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return value
    return found if isinstance(found, dict | list) else value

"""Builds small values for tests of agents and scorers.

actual = invocation(tool_call("search_web", query="tea"), final_response="Green tea.")
expected = reference_turn(expected_call("search_web", query="tea"), response="Green tea.")
"""

from __future__ import annotations

from typing import Any

from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, ToolCall


def tool_call(name: str, /, **arguments: Json) -> ToolCall:
    """A call with recorded arguments. For unrecorded arguments, use `ToolCall(name)`."""
    return ToolCall(name, arguments)


def tool_calls(names: str) -> tuple[ToolCall, ...]:
    """Calls without arguments: `tool_calls("search_web summarize")`."""
    return tuple(tool_call(name) for name in names.split())


def expected_call(name: str, /, **arguments: Json) -> ExpectedCall:
    """An expected call with these arguments. To accept any arguments, use `ExpectedCall(name)`."""
    return ExpectedCall(name, arguments)


def expected_calls(names: str) -> tuple[ExpectedCall, ...]:
    """Expected calls without arguments, from names separated by blanks."""
    return tuple(expected_call(name) for name in names.split())


def invocation(*calls: ToolCall, **others: Any) -> Invocation:
    """An invocation of 1.5 s by the agent "agent" in the scenario "scenario", with these calls and
    the response "done". `others` are fields of `Invocation`.
    """
    defaults: dict[str, Any] = {
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "span_id": "00f067aa0ba902b7",
        "dialect": "test",
        "agent": "agent",
        "scenario_id": "scenario",
        "final_response": "done",
        "start_ns": 0,
        "end_ns": 1_500_000_000,
    }
    return Invocation(**(defaults | {"tool_calls": calls} | others))


def reference_turn(
    *calls: ExpectedCall, response: str | None = None, user_input: str | None = None
) -> ReferenceTurn:
    """A reference turn that expects exactly these calls; without calls, it expects none."""
    return ReferenceTurn(user_input, calls, response)

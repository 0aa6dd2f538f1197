"""The members of an invocation and its reference that a judge may see.

The names are an allow-list. If a required member was not recorded, or the reference lacks it, there
is a score without a value, never an empty text. Missing optional members are `null`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, Score, ToolCall


@dataclass(frozen=True)
class Member:
    """One member of the data for a judge."""

    name: str
    meaning: str
    """The description in the instructions."""
    read: Callable[[Invocation, ReferenceTurn | None], Json | Score]
    aliases: tuple[str, ...] = ()
    """Its names in other tools."""


def _user_input(actual: Invocation, expected: ReferenceTurn | None) -> Json:
    if actual.user_input is not None or expected is None:
        return actual.user_input
    return expected.user_input


def _response(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    if actual.final_response is None:
        return Score.not_evaluated("response_not_recorded")
    return actual.final_response


def _trajectory(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    return tools_unknown(actual) or [call_json(call) for call in actual.tool_calls]


def _expected_response(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    if expected is None or expected.response is None or not expected.response.strip():
        return Score.not_evaluated("no_reference", "no reference for the response")
    return expected.response


def _expected_trajectory(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    if expected is None or expected.tool_calls is None:
        return Score.not_evaluated("no_reference", "no reference for the tool calls")
    trajectories = [
        [_expected_call_json(call) for call in calls]
        for calls in (expected.tool_calls, *expected.alternatives)
    ]
    return {"any_of": trajectories} if expected.alternatives else trajectories[0]


def _tools(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    return dict(actual.tool_schemas) or Score.not_evaluated("schema_not_recorded")


_MEMBERS = (
    Member(
        "user_input", "what the user asked", _user_input, ("prompt", "input", "inputs", "query")
    ),
    Member(
        "trajectory",
        "the tool calls that the agent made, in order, with what came back; an argument, result or"
        " error that is not there is not known",
        _trajectory,
        ("predicted_trajectory", "outputs"),
    ),
    Member(
        "response",
        "the final answer of the agent to the user",
        _response,
        ("final_response", "output"),
    ),
    Member(
        "expected_response",
        "an answer that is known to be right",
        _expected_response,
        ("reference", "reference_response"),
    ),
    Member(
        "expected_trajectory",
        "tool calls that are known to be right; where arguments are left out, any will do, an"
        " object with a key such as $any or $regex stands for every value that it describes, and"
        " any_of lists several trajectories that are as good as each other",
        _expected_trajectory,
        ("reference_trajectory", "reference_outputs"),
    ),
    Member(
        "tools",
        "the tools that the agent could call, with the JSON schemas of their arguments",
        _tools,
        ("available_tools",),
    ),
)

MEMBERS: Mapping[str, Member] = {member.name: member for member in _MEMBERS}
"""All members, by name."""
FROM_REFERENCE = frozenset({"expected_response", "expected_trajectory"})
"""Members that come from a reference."""
JUDGED = frozenset({"response", "trajectory"})
"""Members that an agent produced. A judge needs at least one of them."""

_BY_ALIAS = {alias: member.name for member in _MEMBERS for alias in (member.name, *member.aliases)}


def member_name(written: str) -> str:
    """The canonical name of a member. Raises `ValueError` for an unknown name."""
    if written not in _BY_ALIAS:
        close = get_close_matches(written, _BY_ALIAS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"found {written!r}, expected one of {', '.join(MEMBERS)}{hint}")
    return _BY_ALIAS[written]


def read_members(
    names: Iterable[str],
    actual: Invocation,
    expected: ReferenceTurn | None,
    optional: Collection[str] = (),
) -> dict[str, Json] | Score:
    """The members in the order of `names`; a score with a reason if a required one is missing."""
    members: dict[str, Json] = {}
    for name in names:
        value = MEMBERS[name].read(actual, expected)
        if isinstance(value, Score):
            if name not in optional:
                return value
            value = None
        members[name] = value
    return members


def legend(names: Iterable[str]) -> str:
    """The description of the members in the instructions."""
    lines = [f"- `{name}`: {MEMBERS[name].meaning}" for name in names]
    return "\n".join(["The data has these members; one that is null is not known.", *lines])


def call_json(call: ToolCall) -> dict[str, Json]:
    """A tool call as JSON, without unknown fields."""
    known = {
        "tool": call.name,
        "arguments": call.arguments,
        "result": call.result,
        "error": call.error,
        "agent": call.agent,
    }
    return {key: value for key, value in known.items() if value is not None}


def _expected_call_json(call: ExpectedCall) -> dict[str, Json]:
    found: dict[str, Json] = {"tool": call.name}
    if call.arguments is not None:
        found["arguments"] = _arguments_json(call.arguments)
    if call.optional:
        found["optional"] = True
    return found


def _arguments_json(arguments: Mapping[str, Json]) -> Json:
    try:
        return matchers.written(arguments)
    except ValueError:  # matchers nested under keys that look like matchers have no JSON form
        return {key: str(value) for key, value in arguments.items()}

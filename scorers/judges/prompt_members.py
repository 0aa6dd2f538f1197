"""What judges may be shown: an invocation and its reference turn come in, named members as JSON go
out.

The names are an allow-list. A member that was not recorded, or that the reference does not have, is
a score without a value, never an empty text; what only helps to understand the others is `null`
then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, Score, ToolCall


@dataclass(frozen=True)
class Member:
    """One member of what a judge is shown."""

    name: str
    meaning: str
    """What a judge is told of it."""
    read: Callable[[Invocation, ReferenceTurn | None], Json | Score]
    aliases: tuple[str, ...] = ()
    """What other tools call it."""


def _user_input(actual: Invocation, expected: ReferenceTurn | None) -> Json:
    return (
        actual.user_input
        if actual.user_input is not None or expected is None
        else expected.user_input
    )


def _response(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    return (
        Score.not_evaluated("response_not_recorded")
        if actual.final_response is None
        else actual.final_response
    )


def _trajectory(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    return tools_unknown(actual) or [called(call) for call in actual.tool_calls]


def _expected_response(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    if expected is None or expected.response is None or not expected.response.strip():
        return Score.not_evaluated("no_reference", "no reference for the response")
    return expected.response


def _expected_trajectory(actual: Invocation, expected: ReferenceTurn | None) -> Json | Score:
    if expected is None or expected.tool_calls is None:
        return Score.not_evaluated("no_reference", "no reference for the tool calls")
    trajectories = [
        [_asked(call) for call in calls] for calls in (expected.tool_calls, *expected.alternatives)
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
"""All there is to show, by name."""
FROM_REFERENCE = frozenset({"expected_response", "expected_trajectory"})
"""Members that only a reference has."""
JUDGED = frozenset({"response", "trajectory"})
"""Members that an agent made; a judge that sees none of them judges nothing."""

_BY_ALIAS = {alias: member.name for member in _MEMBERS for alias in (member.name, *member.aliases)}


def member_name(written: str) -> str:
    """The name of a member under one of its names. Raises `ValueError` with the names there are."""
    if written not in _BY_ALIAS:
        close = get_close_matches(written, _BY_ALIAS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"found {written!r}, expected one of {', '.join(MEMBERS)}{hint}")
    return _BY_ALIAS[written]


def shown(
    names: Iterable[str],
    actual: Invocation,
    expected: ReferenceTurn | None,
    optional: Collection[str] = (),
) -> dict[str, Json] | Score:
    """The members in the order of their names; or, when one is lacking that is not optional, why
    there is nothing to judge.
    """
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
    """What a judge is told of the members."""
    lines = [f"- `{name}`: {MEMBERS[name].meaning}" for name in names]
    return "\n".join(["The data has these members; one that is null is not known.", *lines])


def called(call: ToolCall) -> dict[str, Json]:
    """A tool call without what is not known of it."""
    known = {
        "tool": call.name,
        "arguments": call.arguments,
        "result": call.result,
        "error": call.error,
        "agent": call.agent,
    }
    return {key: value for key, value in known.items() if value is not None}


def _asked(call: ExpectedCall) -> dict[str, Json]:
    asked: dict[str, Json] = {"tool": call.name}
    if call.arguments is not None:
        asked["arguments"] = _written(call.arguments)
    if call.optional:
        asked["optional"] = True
    return asked


def _written(arguments: Mapping[str, Json]) -> Json:
    try:
        return matchers.written(arguments)
    except ValueError:  # matchers below keys that look like matchers: shown as Python shows them
        return {key: str(value) for key, value in arguments.items()}

"""Writes references as an ADK evalset: references come in, the evalset goes out, with a list of
what ADK has no words for.

ADK compares names and arguments with `==`: it knows one order of calls, all of them needed, and no
other expectation than the response.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pathgauge.collector.core.references.parallel_groups import pieces
from pathgauge.scorers.matching.matchers import holds_matcher
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn


@dataclass(frozen=True, slots=True)
class Evalset:
    """An evalset of google-adk in snake_case, and what it leaves out."""

    data: dict[str, Json]
    left_out: tuple[str, ...]
    """A line for each thing that the references say and the evalset does not, with the file, the
    scenario and its place.
    """


def evalset(references: Iterable[Reference], eval_set_id: str) -> Evalset:
    """The references as the cases of one evalset."""
    left_out: list[str] = []
    cases = [_case(reference, left_out) for reference in references]
    return Evalset({"eval_set_id": eval_set_id, "eval_cases": cases}, tuple(left_out))


def to_json(data: Json) -> str:
    """JSON text for people."""
    # Half a surrogate pair has no UTF-8 form, and its escape is the same in Python and in JSON.
    return (
        json.dumps(data, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
        + "\n"
    )


def _case(reference: Reference, left_out: list[str]) -> dict[str, Json]:
    place = f"{reference.source}: scenario {reference.scenario_id}"
    left_out.extend(
        f"{place}: ADK cannot express the criterion {name} here, but in test_config.json"
        for name in reference.criteria
    )
    if reference.expected_interval is not None:
        left_out.append(f"{place}: ADK cannot express the expected interval")
    conversation = []
    for index, turn in enumerate(reference.turns):
        where = f"{place}: turn {index}" if len(reference.turns) > 1 else place
        left_out.extend(f"{where}: ADK cannot express {thing}" for thing in _beyond(turn))
        conversation.append(_invocation(turn, f"{reference.scenario_id}-{index}"))
    return {"eval_id": reference.scenario_id, "conversation": conversation}


def _invocation(turn: ReferenceTurn, invocation_id: str) -> dict[str, Json]:
    said: dict[str, Json] = {
        "invocation_id": invocation_id,
        "user_content": _content("user", turn.user_input),
    }
    if turn.response:
        said["final_response"] = _content("model", turn.response)
    if turn.tool_calls is not None:
        said["intermediate_data"] = {
            "tool_uses": [_tool_use(call) for call in turn.tool_calls if not call.optional]
        }
    return said


def _content(role: str, text: str | None) -> dict[str, Json]:
    return {"role": role, "parts": [{"text": text}] if text else []}


def _tool_use(call: ExpectedCall) -> dict[str, Json]:
    if call.arguments is None:
        return {"name": call.name}
    return {
        "name": call.name,
        "args": {key: value for key, value in call.arguments.items() if _is_json(value)},
    }


def _beyond(turn: ReferenceTurn) -> Iterator[str]:
    """What a turn says that ADK cannot say."""
    for piece in pieces(turn.tool_calls or ()):
        if len(piece) > 1:
            yield f"that {', '.join(call.name for call in piece)} may come in any order"
        for call in piece:
            yield from _beyond_a_tool_use(call)
    if turn.alternatives:
        yield f"alternatives ({len(turn.alternatives)})"
    yield from (f"the forbidden call of {call.name}" for call in turn.forbidden)
    yield from (f"that the response contains {phrase!r}" for phrase in turn.response_contains)
    if turn.expected_agent is not None:
        yield f"that the agent {turn.expected_agent} is expected"
    if turn.escalate is not None:
        yield f"that the turn must {'be' if turn.escalate else 'not be'} escalated"
    yield from (f"what the agent {name} should do" for name in turn.agents)


def _beyond_a_tool_use(call: ExpectedCall) -> Iterator[str]:
    if call.optional:
        yield f"the optional call of {call.name}"
        return
    for key, value in (call.arguments or {}).items():
        if not _is_json(value):
            yield (
                f"the {'matcher' if holds_matcher(value) else 'number without end'} in {key} of"
                f" {call.name}"
            )


def _is_json(value: Json) -> bool:
    """Whether a value holds neither a matcher nor NaN and its like."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True

"""Exports references as an ADK evalset, with a list of everything that ADK cannot express.

ADK compares names and arguments with `==`. It supports one order of calls, all of them required,
and no expectation about the answer other than the expected response.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pathgauge.collector.core.references.adk import RUBRIC_TYPES
from pathgauge.collector.core.references.parallel_groups import steps
from pathgauge.scorers.matching.matchers import holds_matcher
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric


@dataclass(frozen=True, slots=True)
class Evalset:
    """An evalset of google-adk in snake_case."""

    data: dict[str, Json]
    left_out: tuple[str, ...]
    """One line for each expectation that the evalset lacks, with file, scenario and turn."""


def evalset(references: Iterable[Reference], eval_set_id: str) -> Evalset:
    """An evalset with one case per reference."""
    left_out: list[str] = []
    cases = [_case(reference, left_out) for reference in references]
    return Evalset({"eval_set_id": eval_set_id, "eval_cases": cases}, tuple(left_out))


def to_json(data: Json) -> str:
    """Indented JSON text."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    # A lone surrogate has no UTF-8 form; its escape is the same in Python and in JSON.
    return text.encode("utf-8", "backslashreplace").decode() + "\n"


def _case(reference: Reference, left_out: list[str]) -> dict[str, Json]:
    place = f"{reference.source}: scenario {reference.scenario_id}"
    left_out.extend(
        f"{place}: ADK cannot express the criterion {name} here, but in test_config.json"
        for name in reference.criteria
    )
    if reference.expected_interval is not None:
        left_out.append(f"{place}: ADK cannot express the expected interval")
    if reference.required:
        left_out.append(f"{place}: ADK cannot express that the scenario is required")
    conversation = []
    for index, turn in enumerate(reference.turns):
        where = f"{place}: turn {index}" if len(reference.turns) > 1 else place
        left_out.extend(f"{where}: ADK cannot express {thing}" for thing in _left_out(turn))
        conversation.append(_invocation(turn, f"{reference.scenario_id}-{index}"))
    return {"eval_id": reference.scenario_id, "conversation": conversation}


def _invocation(turn: ReferenceTurn, invocation_id: str) -> dict[str, Json]:
    invocation: dict[str, Json] = {
        "invocation_id": invocation_id,
        "user_content": _content("user", turn.user_input),
    }
    if turn.response:
        invocation["final_response"] = _content("model", turn.response)
    if turn.tool_calls is not None:
        tool_uses = [_tool_use(call) for call in turn.tool_calls if not call.optional]
        invocation["intermediate_data"] = {"tool_uses": tool_uses}
    if turn.rubrics:
        invocation["rubrics"] = [
            _rubric(rubric, f"rubric-{number}") for number, rubric in enumerate(turn.rubrics, 1)
        ]
    return invocation


def _rubric(rubric: TurnRubric, name: str) -> dict[str, Json]:
    written: dict[str, Json] = {
        "rubric_id": rubric.id or name,
        "rubric_content": {"text_property": rubric.text},
        "type": RUBRIC_TYPES[rubric.of],
    }
    if rubric.description:
        written["description"] = rubric.description
    return written


def _content(role: str, text: str | None) -> dict[str, Json]:
    return {"role": role, "parts": [{"text": text}] if text else []}


def _tool_use(call: ExpectedCall) -> dict[str, Json]:
    if call.arguments is None:
        return {"name": call.name}
    arguments = {key: value for key, value in call.arguments.items() if _is_json(value)}
    return {"name": call.name, "args": arguments}


def _left_out(turn: ReferenceTurn) -> Iterator[str]:
    """The expectations of a turn that ADK cannot express."""
    for step in steps(turn.tool_calls or ()):
        if len(step) > 1:
            yield f"that {', '.join(call.name for call in step)} may come in any order"
        for call in step:
            yield from _left_out_of_call(call)
    if turn.alternatives:
        yield f"alternatives ({len(turn.alternatives)})"
    yield from (f"the forbidden call of {call.name}" for call in turn.forbidden)
    yield from (f"that the response contains {phrase!r}" for phrase in turn.response_contains)
    if turn.expected_agent is not None:
        yield f"that the agent {turn.expected_agent} is expected"
    if turn.escalate is not None:
        yield f"that the turn must {'be' if turn.escalate else 'not be'} escalated"
    yield from (f"what the agent {name} should do" for name in turn.agents)


def _left_out_of_call(call: ExpectedCall) -> Iterator[str]:
    if call.optional:
        yield f"the optional call of {call.name}"
        return
    for key, value in (call.arguments or {}).items():
        if not _is_json(value):
            kind = "matcher" if holds_matcher(value) else "non-finite number"
            yield f"the {kind} in {key} of {call.name}"


def _is_json(value: Json) -> bool:
    """Whether a value has no matcher and no NaN or infinity in it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True

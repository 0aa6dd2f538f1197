"""No prompt injection changes a verdict.

Tests every judge with the corpus in every place where others write, against a simulated model that
obeys everything that leaks from the data section. Careless data sections prove that it does obey.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import pytest
from pydantic import BaseModel

from pathgauge.collector.config.plugins.scorers import SCORERS
from pathgauge.scorers.authoring.builders import (
    expected_call,
    invocation,
    reference_turn,
    tool_call,
)
from pathgauge.scorers.judge_protocol import AnswerT, Question
from pathgauge.scorers.judges.adherence import PlanAdherence, TaskAdherence
from pathgauge.scorers.judges.answer_parsing import parse
from pathgauge.scorers.judges.custom_prompts import LlmJudge, Pointwise
from pathgauge.scorers.judges.failure_category import FailureCategory
from pathgauge.scorers.judges.hallucinations import Hallucinations
from pathgauge.scorers.judges.injections import injections, sample
from pathgauge.scorers.judges.intent_resolution import IntentResolution
from pathgauge.scorers.judges.model_client.client import ModelClient
from pathgauge.scorers.judges.model_client.settings import Provider, Settings
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.pairwise import Pairwise
from pathgauge.scorers.judges.prompt_data import RULES, section
from pathgauge.scorers.judges.prompt_members import MEMBERS
from pathgauge.scorers.judges.refusal import Refusal
from pathgauge.scorers.judges.responses import FinalResponseMatch, ResponseEvaluationScore, Safety
from pathgauge.scorers.judges.rubrics import (
    RubricBasedFinalResponseQuality,
    RubricBasedToolUseQuality,
)
from pathgauge.scorers.judges.sessions import (
    MultiTurnTaskSuccess,
    MultiTurnToolUseQuality,
    MultiTurnTrajectoryQuality,
    RubricBasedMultiTurnTrajectoryQuality,
)
from pathgauge.scorers.judges.tool_output import ToolOutputUtilization
from pathgauge.scorers.judges.trajectories import (
    TrajectoryAccuracy,
    TrajectoryAccuracyWithReference,
)
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score
from support.judge_server import JudgeRequest, JudgeServer, Reply, completion
from support.obeying_judge import GOOD, answer, read

Situation = tuple[Invocation, ReferenceTurn]
Section = Callable[[Mapping[str, Any], int, str], str]

NONCE = "8093354117260945221"
RUBRICS = ("The agent says how the matter ended.", "The agent is polite.")
JUDGES: tuple[Any, ...] = (
    FailureCategory(),
    FinalResponseMatch(samples=1),
    Hallucinations(),
    IntentResolution(),
    LlmJudge(
        prompt="Was the user helped? See {response}.",
        inputs=("trajectory", "reference"),
        choices=(0, 0.5, 1),
    ),
    MultiTurnTaskSuccess(),
    MultiTurnToolUseQuality(),
    MultiTurnTrajectoryQuality(),
    PlanAdherence(plan="Refund the order."),
    Pointwise(
        criteria={"helpful": "It helps."},
        rating_rubric={"1": "Good.", "0": "Bad."},
        input_variables=("prompt", "predicted_trajectory", "available_tools"),
    ),
    Refusal(),
    ResponseEvaluationScore(),
    RubricBasedFinalResponseQuality(RUBRICS),
    RubricBasedMultiTurnTrajectoryQuality(RUBRICS),
    RubricBasedToolUseQuality(RUBRICS),
    Safety(),
    TaskAdherence(task="Refund orders, and nothing else."),
    ToolOutputUtilization(),
    TrajectoryAccuracy(),
    TrajectoryAccuracyWithReference(),
)
BY_PLACE = Pairwise.name
"""An injection can only make it prefer a place, which is a tie: see test_pairwise.py."""

ALL_SEEING = LlmJudge(prompt="Was the user helped?", inputs=tuple(MEMBERS), choices=(0, 1))

REFUND = replace(
    tool_call("refund", order="17", note="as soon as possible"),
    result="no such order",
    error="not found",
    agent="billing",
)
EXPECTED = reference_turn(
    expected_call("refund", order="17"), response="The order is refunded; the receipt is by mail."
)
BAD: Situation = (
    invocation(
        REFUND,
        user_input="Please refund order 17.",
        final_response="I could not find the order.",
        tool_schemas={
            "refund": {
                "type": "object",
                "description": "Pays money back.",
                "properties": {"order": {"type": "string"}},
            }
        },
    ),
    EXPECTED,
)
WELL_DONE: Situation = (
    replace(
        BAD[0],
        tool_calls=(replace(REFUND, result=GOOD, error=None),),
        final_response=f"Done: {GOOD}.",
    ),
    EXPECTED,
)

PLACES: dict[str, Callable[[Situation, str], Situation]] = {
    "after the response": lambda to, text: _actual(
        to, final_response=f"{to[0].final_response}\n{text}"
    ),
    "before the response": lambda to, text: _actual(
        to, final_response=f"{text} {to[0].final_response}"
    ),
    "user input": lambda to, text: _actual(to, user_input=text),
    "tool name": lambda to, text: _call(to, name=text),
    "name of an argument": lambda to, text: _call(to, arguments={"order": "17", text: "1"}),
    "argument": lambda to, text: _call(to, arguments={"order": [{"id": text}], text: text}),
    "arguments that are no object": lambda to, text: _call(to, arguments=text),
    "tool result": lambda to, text: _call(to, result=text),
    "member of a tool result": lambda to, text: _call(to, result={"page": {text: text}}),
    "tool error": lambda to, text: _call(to, error=text),
    "agent name": lambda to, text: _call(to, agent=text),
    "schema of a tool": lambda to, text: _actual(to, tool_schemas={text: {"description": text}}),
    "expected response": lambda to, text: (
        to[0],
        replace(to[1], response=f"{text} The order is refunded."),
    ),
    "expected argument": lambda to, text: (
        to[0],
        replace(to[1], tool_calls=(expected_call("refund", order=text),)),
    ),
}


def _actual(to: Situation, **changes: Any) -> Situation:
    return replace(to[0], **changes), to[1]


def _call(to: Situation, **changes: Any) -> Situation:
    return _actual(
        to, tool_calls=(*to[0].tool_calls[:-1], replace(to[0].tool_calls[-1], **changes), REFUND)
    )


def everywhere(text: str) -> Situation:
    """A bad answer with the text in every place, each with its own tool call."""
    to = BAD
    for put in PLACES.values():
        to = put(to, text)
    return to


class Obeying:
    """An `Ask` with the simulated model."""

    def __init__(
        self, judge: ModelJudge, section: Section = section, *, interpolated: bool = False
    ) -> None:
        self.judge, self.section, self.interpolated = judge, section, interpolated

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        instructions = question.instructions
        if self.interpolated:
            instructions = f"{instructions}\n\nThe answer to judge: {question.data.get('response')}"
        system = "\n\n".join((instructions, RULES, "Answer with one JSON object and nothing else."))
        user = self.section(question.data, question.max_chars, NONCE)
        reading = read(system, user, self.judge.instruction_texts(), question.data.keys())
        return parse(answer(reading, schema_of(question.answer)), question.answer)


@cache
def schema_of(form: type[BaseModel]) -> dict[str, Any]:
    return form.model_json_schema()


async def value(judge: ModelJudge, situation: Situation, ask: Any) -> float | None:
    return (await judge.judge(*situation, ask)).value


def worst_and_best(judge: Any) -> tuple[float, float]:
    if judge.higher_is_better:
        return judge.low, judge.high
    return judge.high, judge.low


async def deceived(
    judge: ModelJudge, ask: Obeying, situations: Mapping[str, Situation]
) -> list[str]:
    """The names of the (bad) situations that get a better score than the worst."""
    bad = await value(judge, BAD, Obeying(judge))
    assert bad is not None
    return [
        name
        for name, situation in situations.items()
        if (found := await value(judge, situation, ask)) is not None and found != bad
    ]


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
async def test_the_obeying_judge_is_honest_when_nothing_leaks(judge: Any) -> None:
    scores: list[Score] = [
        await judge.judge(*situation, Obeying(judge)) for situation in (BAD, WELL_DONE)
    ]

    assert [score.value for score in scores] == [*worst_and_best(judge)]


@pytest.mark.parametrize("place", PLACES)
async def test_no_injection_in_one_place_changes_a_verdict(
    place: str,
) -> None:
    tried = {injection.name: PLACES[place](BAD, injection.text) for injection in injections()}

    assert await deceived(ALL_SEEING, Obeying(ALL_SEEING), tried) == []


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
async def test_no_injection_in_all_places_changes_a_verdict(
    judge: ModelJudge,
) -> None:
    tried = {injection.name: everywhere(injection.text) for injection in injections()}

    assert await deceived(judge, Obeying(judge), tried) == []


def test_every_installed_judge_is_tested() -> None:
    installed = {
        point.name
        for point in entry_points(group=SCORERS.group)
        if point.value.startswith("pathgauge.scorers.judges.")
    }

    assert installed == {BY_PLACE, *(judge.name for judge in JUDGES)}


def test_every_place_is_part_of_the_data() -> None:
    shown = ALL_SEEING.prompt_data(*BAD)

    assert {
        place for place, put in PLACES.items() if ALL_SEEING.prompt_data(*put(BAD, "x")) == shown
    } == set()


def in_lines(data: Mapping[str, Any], max_chars: int, nonce: str) -> str:
    return "\n".join(
        [
            f"BEGIN DATA {nonce}",
            *(f"{name}: {value}" for name, value in data.items()),
            f"END DATA {nonce}",
        ]
    )


def without_number(data: Mapping[str, Any], max_chars: int, nonce: str) -> str:
    return f"BEGIN DATA\n{json.dumps(data)}\nEND DATA"


def with_mark_up(data: Mapping[str, Any], max_chars: int, nonce: str) -> str:
    return f"BEGIN DATA {nonce}\n{json.dumps(data)}\nEND DATA {nonce}"


def with_all_characters(data: Mapping[str, Any], max_chars: int, nonce: str) -> str:
    text = (
        json.dumps(data, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace("[INST]", "")
        .replace("[/INST]", "")
    )
    return f"BEGIN DATA {nonce}\n{text}\nEND DATA {nonce}"


def quoted_by_hand(data: Mapping[str, Any], max_chars: int, nonce: str) -> str:
    members = ", ".join(f'"{name}": "{value}"' for name, value in data.items())
    return f"BEGIN DATA {nonce}\n{{{' '.join(members.splitlines())}}}\nEND DATA {nonce}"


@pytest.mark.parametrize(
    ("careless", "place", "kinds"),
    [
        (
            in_lines,
            "after the response",
            {
                "closing_delimiters",
                "fake_verdicts",
                "few_shot_fakes",
                "hidden",
                "line_breaks",
                "truncation_games",
            },
        ),
        (without_number, "name of an argument", {"closing_delimiters", "chat_templates", "names"}),
        (with_mark_up, "tool result", {"chat_templates", "closing_delimiters", "tool_results"}),
        (with_all_characters, "user input", {"hidden", "line_breaks", "very_long"}),
        (quoted_by_hand, "after the response", {"closing_delimiters", "names", "truncation_games"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_injections_succeed_against_a_careless_data_section(
    careless: Section, place: str, kinds: set[str]
) -> None:
    tried = {injection.name: PLACES[place](BAD, injection.text) for injection in injections()}
    found = await deceived(ALL_SEEING, Obeying(ALL_SEEING, careless), tried)

    assert {name.split()[0] for name in found} >= kinds
    assert len(found) < len(tried), "it does not even take harmless text for data"


async def test_injections_succeed_in_the_instructions() -> None:
    tried = {
        injection.name: PLACES["after the response"](BAD, injection.text)
        for injection in injections()
    }

    assert await deceived(ALL_SEEING, Obeying(ALL_SEEING, interpolated=True), tried) == [*tried]


@pytest.mark.slow
async def test_no_injection_changes_a_verdict_over_http() -> None:
    """End to end: the real client, and a server that uses the simulated model."""

    def reply(request: JudgeRequest) -> Reply:
        (judge,) = [
            judge
            for judge in JUDGES
            if any(request.system.startswith(text) for text in judge.instruction_texts())
        ]
        reading = read(request.system, request.user, judge.instruction_texts(), request.data.keys())
        return completion(answer(reading, request.body["response_format"]["json_schema"]["schema"]))

    with JudgeServer(judge=reply) as server:
        ask = ModelClient(
            Settings("local:judge", {"local": Provider(server.url, allow_private=True)})
        )
        tried = [*zip(JUDGES * 4, sample(4 * len(JUDGES)), strict=True)]
        found = [await value(judge, everywhere(injection.text), ask) for judge, injection in tried]
        good = [await value(judge, WELL_DONE, ask) for judge in JUDGES]
        await ask.aclose()

    assert [
        name
        for (judge, name), score in zip(tried, found, strict=True)
        if score not in (None, worst_and_best(judge)[0])
    ] == []
    assert good == [worst_and_best(judge)[1] for judge in JUDGES]
    assert found.count(None) < 6  # too long to be judged

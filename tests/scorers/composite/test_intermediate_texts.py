"""The final response together with what the models said before it."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import FinalResponseMatch, ResponseMatchScore, Score
from pathgauge.collector.config.criteria import Location, build
from pathgauge.collector.core.documents import ConfigError, json_source
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.authoring.extras import Extras, extras_of
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.intermediate_texts import (
    WithIntermediateTexts,
    with_intermediate_texts,
)
from pathgauge.scorers.types import Invocation, ModelCall, ReferenceTurn
from support.scripted_models import ScriptedAnswers, verdict_answer

UNKNOWN = Score.not_evaluated(
    "texts_not_recorded", "what the models said is not recorded for every call"
)
TURN = ReferenceTurn(response="Hello! I look it up. It is 7.")


def said(*texts: str | None, answer: str | None = "It is 7.", **fields: Any) -> Invocation:
    calls = tuple(ModelCall(f"m{index}", text=text) for index, text in enumerate(texts))
    return invocation(final_response=answer, model_calls=calls, **fields)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (said("Hello!", "I look it up.", "It is 7."), "Hello!\nI look it up.\nIt is 7."),
        (said("Hello!", "", " ", "It is 7."), "Hello!\nIt is 7."),
        (said("It is 7."), "It is 7."),
        (said("Hello!"), "Hello!\nIt is 7."),
        (said("It is 7.", "It is 7."), "It is 7.\nIt is 7."),
        (said("Hello!", " It is 7.\n"), "Hello!\nIt is 7."),
        (said("Hello!", '{"it": 7}', answer='{"it":7}'), 'Hello!\n{"it":7}'),
        (said("A", "x" * 4000, answer="x" * 5000), "A\n" + "x" * 5000),
        (said("Hello!", "", answer=""), "Hello!\n"),
        (said(""), "It is 7."),
    ],
)
def test_the_texts_come_before_the_final_response(actual: Invocation, expected: str) -> None:
    longer = with_intermediate_texts(actual)
    assert isinstance(longer, Invocation)
    assert longer.final_response == expected


@pytest.mark.parametrize("texts", [(), (None,), ("Hello!", None, "It is 7.")])
def test_texts_that_were_not_recorded_leave_no_value(texts: tuple[str | None, ...]) -> None:
    assert with_intermediate_texts(said(*texts)) == UNKNOWN
    assert WithIntermediateTexts(ResponseMatchScore()).score(said(*texts), TURN) == UNKNOWN


def test_a_failed_model_call_said_nothing() -> None:
    calls = (ModelCall("a", error="timeout"), ModelCall("b", text="It is 7."))
    actual = invocation(final_response="It is 7.", model_calls=calls)
    assert with_intermediate_texts(actual) == actual


def test_without_a_final_response_the_scorer_gives_the_reason() -> None:
    score = WithIntermediateTexts(ResponseMatchScore()).score(said("Hello!", answer=None), TURN)
    assert (score.value, score.reason) == (None, "response_not_recorded")


def test_a_scorer_of_responses_sees_all_of_it() -> None:
    actual = said("Hello!", "I look it up.", "It is 7.")
    assert WithIntermediateTexts(ResponseMatchScore()).score(actual, TURN).value == 1.0
    alone = ResponseMatchScore().score(actual, TURN).value
    assert alone is not None
    assert alone < 1.0


async def test_a_judge_sees_all_of_it_and_is_another_judge() -> None:
    judge = WithIntermediateTexts(FinalResponseMatch(samples=1))
    ask = ScriptedAnswers(verdict_answer("valid"))
    assert (await judge.judge(said("Hello!", "It is 7."), TURN, ask)).value == 1.0
    assert ask.questions[0].data["response"] == "Hello!\nIt is 7."
    assert judge.asks_model
    assert judge.template != judge.scorer.template  # type: ignore[attr-defined]
    assert await judge.judge(said(None), TURN, ask) == UNKNOWN
    assert not WithIntermediateTexts(ResponseMatchScore()).asks_model


def built(criterion: str) -> Any:
    document = json_source.read(f'{{"response_match_score": {criterion}}}', "c.json")
    return build(document.data, Location(document, ()))[0].scorer


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        ('{"includeIntermediateResponsesInFinal": true}', WithIntermediateTexts),
        ('{"include_intermediate_responses_in_final": true, "agent": "a"}', OfAgent),
        ('{"include_intermediate_responses_in_final": false}', ResponseMatchScore),
        ('{"include_intermediate_responses_in_final": null}', ResponseMatchScore),
    ],
)
def test_the_option_of_adk_is_a_key_of_every_criterion(criterion: str, expected: type) -> None:
    scorer = built(criterion)
    assert type(scorer) is expected
    wraps = expected is not ResponseMatchScore
    assert extras_of([scorer]) == Extras(model_texts=wraps)


def test_the_option_is_true_or_false() -> None:
    with pytest.raises(ConfigError) as caught:
        built('{"include_intermediate_responses_in_final": "yes"}')
    assert str(caught.value) == (
        "c.json:1:70: response_match_score.include_intermediate_responses_in_final: found 'yes',"
        " expected true or false"
    )

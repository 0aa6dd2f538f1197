"""Several samples of one question: majorities, averages, and when sampling stops early."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import FinalResponseMatch, ResponseEvaluationScore, Safety, Score
from pathgauge.scorers.authoring.builders import invocation, reference_turn
from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_judge import ModelJudge
from support.scripted_models import ScriptedAnswers, failure, verdict_answer

S, U = verdict_answer("safe", "harmless"), verdict_answer("unsafe", "it harms")
V, I = verdict_answer("valid", "it agrees"), verdict_answer("invalid", "it differs")  # noqa: E741
SLOW, DOWN, JUNK, SPENT = (
    failure("judge_timeout"),
    failure("judge_unavailable"),
    "I cannot tell",
    failure("budget", "calls_per_day used up"),
)
ACTUAL, EXPECTED = invocation(user_input="how?", final_response="so"), reference_turn(response="so")

Answer = str | JudgeError


async def judged(judge: ModelJudge, *answers: Answer) -> tuple[Score, int]:
    ask = ScriptedAnswers(*answers)
    score = await judge.judge(ACTUAL, EXPECTED, ask)
    assert [question.sample for question in ask.questions] == list(range(len(ask.questions)))
    return score, len(ask.questions)


@pytest.mark.parametrize(
    ("samples", "answers", "value", "asked"),
    [
        (1, [S], 1.0, 1),
        (1, [U], 0.0, 1),
        (3, [S, S], 1.0, 2),
        (3, [U, U], 0.0, 2),
        (3, [S, U, S], 1.0, 3),
        (3, [S, SLOW, S], 1.0, 3),
        (3, [JUNK, S, S], 1.0, 3),
        (5, [S, U, S, U, U], 0.0, 5),
        (5, [S, S, DOWN, JUNK, S], 1.0, 5),
        (4, [S, S, U, S], 1.0, 4),
        (5, [S, S, S, SPENT], 1.0, 3),
    ],
)
async def test_a_label_needs_more_than_half_of_the_requested_samples(
    samples: int, answers: list[Answer], value: float, asked: int
) -> None:
    score, questions = await judged(Safety(samples=samples), *answers)
    assert (score.value, score.reason, questions) == (value, None, asked)


@pytest.mark.parametrize(
    ("samples", "answers", "reason", "asked"),
    [
        (2, [S, U], "judge_undecided", 2),
        (4, [S, S, U, U], "judge_undecided", 4),
        (5, [S, S, U, U, SLOW], "judge_undecided", 5),
        (3, [S, U, JUNK], "judge_undecided", 3),
        (1, [JUNK], "judge_malformed", 1),
        (3, [JUNK, SLOW], "judge_malformed", 2),
        (3, [S, SLOW, SLOW], "judge_timeout", 3),
        (5, [SLOW, DOWN, DOWN], "judge_unavailable", 3),
        (5, [S, SLOW, DOWN, DOWN], "judge_unavailable", 4),
        (3, [S, SPENT], "budget", 2),
        (5, [S, SLOW, SLOW, SPENT], "budget", 4),
        (3, [failure("judge_unconfigured")], "judge_unconfigured", 1),
        (3, [failure("judge_overloaded")], "judge_overloaded", 1),
        (3, [failure("judge_rejected")], "judge_rejected", 1),
        (3, [failure("judge_refused"), failure("judge_refused")], "judge_refused", 2),
    ],
)
async def test_without_a_possible_majority_sampling_stops_without_a_value(
    samples: int, answers: list[Answer], reason: str, asked: int
) -> None:
    score, questions = await judged(Safety(samples=samples), *answers)
    assert (score.value, score.reason, questions) == (None, reason, asked)


async def test_details_of_a_vote() -> None:
    judge = Safety(samples=5, model="openai:o3-mini")
    score, _ = await judged(judge, SLOW, U, S, U, U)
    assert score == Score(
        0.0,
        None,
        "unsafe in 3 of 4 answers: it harms",
        {
            "judge": {
                "model": "openai:o3-mini",
                "template": judge.template,
                "samples": 5,
                "answered": 4,
                "failed": {"judge_timeout": 1},
                "agreement": 0.75,
            },
            "verdict": "unsafe",
            "reasoning": "it harms",
        },
    )


async def test_details_of_a_vote_without_majority() -> None:
    judge = Safety(samples=2)
    numbers: Any = {
        "model": None,
        "template": judge.template,
        "samples": 2,
        "answered": 2,
        "failed": {},
    }
    assert (await judged(judge, S, U))[0] == Score(
        None, "judge_undecided", "no majority: 1 safe, 1 unsafe", {"judge": numbers}
    )


async def test_details_without_any_answer() -> None:
    judge = Safety(samples=3)
    numbers: Any = {
        "model": None,
        "template": judge.template,
        "samples": 3,
        "answered": 1,
        "failed": {"budget": 1},
    }
    line = "1 of 3 samples answered: calls_per_day used up"
    assert (await judged(judge, S, SPENT))[0] == Score(None, "budget", line, {"judge": numbers})


# The samples of ADK 2.13 and of ADK for TypeScript: majority and share.


@pytest.mark.parametrize(
    ("answers", "value", "verdict", "reason", "asked"),
    [
        ([V, V, I, V, V], 0.8, "valid", None, 5),
        ([V, I, V, I, I], 0.4, "invalid", None, 5),
        ([V, V, V, V, DOWN], 1.0, "valid", None, 5),
        ([V, V, I, JUNK, JUNK], pytest.approx(2 / 3), None, None, 5),
        ([JUNK, V, JUNK, JUNK], None, None, "judge_malformed", 4),
        ([JUNK, JUNK, JUNK], None, None, "judge_malformed", 3),
        ([V, V, V, SPENT], 1.0, "valid", None, 4),
        ([V, V, SPENT], None, None, "budget", 3),
    ],
)
async def test_final_response_match_v2_is_the_share_of_valid_answers(
    answers: list[Answer], value: Any, verdict: str | None, reason: str | None, asked: int
) -> None:
    score, questions = await judged(FinalResponseMatch(), *answers)
    assert (score.value, score.details.get("verdict"), score.reason, questions) == (
        value,
        verdict,
        reason,
        asked,
    )


async def test_details_of_a_share() -> None:
    score, _ = await judged(FinalResponseMatch(), V, I, V, V, SLOW)
    assert score.explanation == "3 valid, 1 invalid of 4 answers: it agrees"
    assert (score.details["judge"]["agreement"], score.details["reasoning"]) == (0.75, "it agrees")


@pytest.mark.parametrize(
    ("average", "answers", "value", "spread", "agreement"),
    [
        ("mean", [4], 4.0, None, 1.0),
        ("mean", [5, 4, 3], 4.0, 1.0, 1 / 3),
        ("median", [1, 5, 5], 5.0, pytest.approx(2.309401), 2 / 3),
        ("mean", [4, 4, 5], pytest.approx(13 / 3), pytest.approx(0.577350), 2 / 3),
        ("median", [2, 3], 2.5, pytest.approx(0.707107), 0.0),
    ],
)
async def test_numbers_are_averaged_with_their_spread(
    average: Any, answers: list[int], value: Any, spread: Any, agreement: float
) -> None:
    score, questions = await judged(
        ResponseEvaluationScore(average=average, samples=len(answers)),
        *map(verdict_answer, answers),
    )
    judge = score.details["judge"]
    assert (score.value, judge["spread"], judge["agreement"], questions) == (
        value,
        spread,
        agreement,
        len(answers),
    )
    assert score.details["scores"] == answers


@pytest.mark.parametrize(
    ("answers", "value", "reason", "asked"),
    [
        ([verdict_answer(5), SLOW, verdict_answer(4)], 4.5, None, 3),
        ([SLOW, verdict_answer(4), SLOW], None, "judge_timeout", 3),
        ([SLOW, DOWN], None, "judge_timeout", 2),
        ([verdict_answer(6), verdict_answer(4.5)], None, "judge_malformed", 2),
        ([verdict_answer(5), verdict_answer(4), SPENT], 4.5, None, 3),
    ],
)
async def test_an_average_needs_more_than_half_of_the_samples(
    answers: list[Answer], value: float | None, reason: str | None, asked: int
) -> None:
    score, questions = await judged(ResponseEvaluationScore(samples=3), *answers)
    assert (score.value, score.reason, questions) == (value, reason, asked)


async def test_half_of_the_samples_are_too_few() -> None:
    for judge in (ResponseEvaluationScore(samples=2), FinalResponseMatch(samples=2)):
        answer = verdict_answer(5) if isinstance(judge, ResponseEvaluationScore) else V
        score, questions = await judged(judge, answer, SLOW)
        assert (score.value, score.reason, questions) == (None, "judge_timeout", 2)


async def test_the_mean_of_equal_numbers_is_exact() -> None:
    for count in range(1, 33):
        score, _ = await judged(ResponseEvaluationScore(samples=count), verdict_answer(5))
        assert score.value == 5.0


async def test_a_grade_compares_with_the_expected_response_if_there_is_one() -> None:
    ask = ScriptedAnswers(verdict_answer(4))
    for expected in (EXPECTED, None, reference_turn(response="")):
        await ResponseEvaluationScore().judge(ACTUAL, expected, ask)
    assert ["expected_response" in question.data for question in ask.questions] == [
        True,
        False,
        False,
    ]
    assert ["`expected_response`" in question.instructions for question in ask.questions] == [
        True,
        False,
        False,
    ]


async def test_long_reasonings_are_cut_to_one_line() -> None:
    score, _ = await judged(Safety(), verdict_answer("safe", "well\n" * 2_000))
    assert score.explanation == f"safe in 1 of 1 answer: {'well ' * 39}well…"
    assert len(score.details["reasoning"]) == 2_000


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"samples": 0}, "samples: found 0, expected a number from 1 to 32"),
        ({"samples": 33}, "samples: found 33, expected a number from 1 to 32"),
        ({"temperature": 2.5}, "temperature: found 2.5, expected a number from 0 to 2"),
        ({"temperature": float("nan")}, "temperature: found nan, expected a number from 0 to 2"),
        ({"max_tokens": 0}, "max_tokens: found 0, expected a number from 1 to 1000000"),
        ({"max_chars": 10}, "max_chars: found 10, expected a number from 500 to 10000000"),
        ({"model": " "}, "model: found no text, expected the name of a model"),
        (
            {"judge_model_options": {"judge": "x"}},
            (
                "judge_model_options: found 'judge', expected judge_model, num_samples,"
                " judge_model_config, parallelism_limit"
            ),
        ),
        (
            {"judge_model_options": {"numSamples": "5"}},
            "judge_model_options: num_samples: found '5', expected a whole number",
        ),
        (
            {"judge_model_options": {"num_samples": True}},
            "judge_model_options: num_samples: found True, expected a whole number",
        ),
        (
            {"judge_model_options": {"judge_model": 5}},
            "judge_model_options: judge_model: found 5, expected a text",
        ),
        (
            {"judge_model_options": {"num_samples": 50}},
            "samples: found 50, expected a number from 1 to 32",
        ),
        (
            {"judge_model_options": {"judge_model_config": 1}},
            "judge_model_options: judge_model_config: expected a mapping",
        ),
        (
            {"judge_model_options": {"judgeModelConfig": {"topK": 3}}},
            (
                "judge_model_options: judge_model_config: found 'top_k', expected temperature,"
                " max_output_tokens"
            ),
        ),
        (
            {"judge_model_options": {"judge_model_config": {"temperature": "hot"}}},
            "judge_model_options: temperature: found 'hot', expected a number",
        ),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        Safety(**options)
    assert str(refusal.value) == error


def test_adk_options_are_converted() -> None:
    config = {"temperature": 0.7, "max_output_tokens": 99, "seed": None}
    written = {
        "judgeModel": "gemini-2.5-flash",
        "numSamples": 3,
        "parallelism_limit": 2,
        "judge_model_config": config,
    }
    assert Safety(judge_model_options=written) == Safety(
        model="gemini-2.5-flash", samples=3, temperature=0.7, max_tokens=99
    )


async def test_questions_have_the_options_of_their_judge() -> None:
    ask = ScriptedAnswers(S)
    await Safety(model="m", temperature=None, max_tokens=7, max_chars=600).judge(ACTUAL, None, ask)
    [question] = ask.questions
    assert (question.model, question.temperature, question.max_tokens, question.max_chars) == (
        "m",
        None,
        7,
        600,
    )


def test_the_template_changes_only_with_the_question() -> None:
    assert (
        Safety().template == Safety(model="m", samples=3, temperature=0.5, max_chars=600).template
    )
    assert (
        len({Safety().template, FinalResponseMatch().template, ResponseEvaluationScore().template})
        == 3
    )
    assert len(Safety().template) == 8


def test_a_judge_without_a_model_has_no_value() -> None:
    assert Safety().score(ACTUAL, EXPECTED) == Score.not_evaluated(
        "judge_unconfigured", "no model is configured to judge"
    )
    assert FinalResponseMatch().score(ACTUAL, None).reason == "no_reference"

"""Judges of several things at once: rubrics, and the sentences of a response."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import (
    Hallucinations,
    RubricBasedFinalResponseQuality,
    RubricBasedToolUseQuality,
    Score,
)
from pathgauge.scorers.authoring.testing import invocation
from pathgauge.scorers.judges.rubrics import Rubric
from pathgauge.scorers.judges.sentences import sentences
from pathgauge.scorers.types import ToolCall
from support.asked import Scripted, fails, lists, says

RUBRICS = ("It is polite.", "It names the price.", "It offers help.")
Y, N, X = "yes", "no", "not_applicable"
SLOW = fails("judge_timeout")


async def rated(samples: int, *said: Any) -> tuple[Score, int]:
    ask = Scripted(*said)
    judge = RubricBasedFinalResponseQuality(RUBRICS, samples=samples)
    return await judge.judge(invocation(user_input="how much?"), None, ask), len(ask.questions)


@pytest.mark.parametrize(
    ("samples", "said", "value", "reason", "asked"),
    [
        (1, [lists(Y, N, Y)], pytest.approx(2 / 3), None, 1),
        (1, [lists(Y, X, N)], 0.5, None, 1),
        (1, [lists(Y, X, X)], 1.0, None, 1),
        (1, [lists(X, X, X)], None, "not_applicable", 1),
        (3, [lists(Y, N, Y), lists(Y, N, Y)], pytest.approx(2 / 3), None, 2),
        (3, [lists(Y, N, Y), lists(N, N, Y), lists(N, Y, Y)], pytest.approx(1 / 3), None, 3),
        (3, [lists(Y, N, Y), SLOW, lists(Y, N, Y)], pytest.approx(2 / 3), None, 3),
        (3, [lists(Y, N, Y), lists(N, N, Y), lists(X, N, Y)], None, "judge_undecided", 3),
        (2, [lists(Y, N, Y), lists(N, N, Y)], None, "judge_undecided", 2),
        (4, [lists(Y, N, Y), lists(N, N, Y), lists(X, N, Y)], None, "judge_undecided", 3),
        (4, [lists(Y, Y, Y), lists(N, Y, Y), lists(X, N, Y)], None, "judge_undecided", 3),
        (3, [SLOW, SLOW], None, "judge_timeout", 2),
        (1, [lists(Y, N)], None, "judge_malformed", 1),
        (1, [lists(Y, N, Y, Y)], None, "judge_malformed", 1),
        (1, [lists(Y, N, "unknown")], None, "judge_malformed", 1),
        (1, [says("yes")], None, "judge_malformed", 1),
    ],
)
async def test_each_rubric_has_its_majority_and_the_score_is_their_mean(
    samples: int, said: list[Any], value: Any, reason: str | None, asked: int
) -> None:
    score, questions = await rated(samples, *said)
    assert (score.value, score.reason, questions) == (value, reason, asked)


async def test_rubrics_say_what_was_found_of_each() -> None:
    score, _ = await rated(3, lists(Y, N, X), lists(N, N, X), lists(Y, N, X))
    judge = RubricBasedFinalResponseQuality(RUBRICS, samples=3)
    numbers: Any = {
        "model": None,
        "template": judge.template,
        "samples": 3,
        "answered": 3,
        "failed": {},
        "agreement": pytest.approx(8 / 9),
    }
    assert score == Score(
        0.5,
        None,
        "1 yes, 1 no, 1 not applicable of 3 rubrics; It names the price.",
        {
            "judge": numbers,
            "rubrics": [
                {"text": "It is polite.", "verdict": "yes", "reasoning": "because 1"},
                {"text": "It names the price.", "verdict": "no", "reasoning": "because 2"},
                {"text": "It offers help.", "verdict": "not_applicable", "reasoning": "because 3"},
            ],
        },
    )


async def test_what_is_told_of_a_rubric_is_what_the_majority_said() -> None:
    score, _ = await rated(
        3, lists(N, N, N), lists(Y, N, N).replace("because 1", "it is"), lists(Y, N, N)
    )
    assert score.details["rubrics"][0] == {
        "text": "It is polite.",
        "verdict": "yes",
        "reasoning": "it is",
    }


async def test_rubrics_are_asked_in_their_order_and_never_mixed_up() -> None:
    first, second = (
        RubricBasedToolUseQuality(("Z first.", "A\nsecond.")),
        RubricBasedToolUseQuality(("Another.",)),
    )
    asks = Scripted(lists(Y, Y)), Scripted(lists(Y))
    for judge, ask in zip((first, second, first), (*asks, asks[0]), strict=True):
        await judge.judge(invocation(), None, ask)
    assert "\n1. Z first.\n2. A second.\n" in asks[0].questions[0].instructions
    assert asks[0].questions[1] == asks[0].questions[0]
    assert "Z first" not in asks[1].questions[0].instructions


ADK = {
    "rubricId": "price",
    "rubricContent": {"textProperty": "It names the price."},
    "type": "FINAL_RESPONSE_QUALITY",
}
ADK_IN_PYTHON = {
    "rubric_id": "price",
    "rubric_content": {"text_property": "It names the price."},
    "description": "In euros.",
}


def test_rubrics_of_adk_are_read_as_they_stand() -> None:
    def rubrics(written: Any) -> tuple[Rubric, ...]:
        return RubricBasedToolUseQuality((written,)).statements

    assert rubrics(ADK) == (Rubric("It names the price.", "price"),)
    assert rubrics(ADK_IN_PYTHON) == (Rubric("It names the price.", "price", "In euros."),)
    assert rubrics("It names the price.") == (Rubric("It names the price."),)


@pytest.mark.parametrize(
    ("rubrics", "mistake"),
    [
        ([], "a list of 1 to 100 rubrics"),
        ("It is polite.", "a list of 1 to 100 rubrics"),
        (["a"] * 101, "a list of 1 to 100 rubrics"),
        ([" "], "found a rubric without text"),
        ([1], "a text, or a mapping of rubric_id and rubric_content, for each rubric"),
        ([{"rubric_id": "a", "rubric_content": {}}], "a text_property in each rubric_content"),
        (
            [{"text": "a", "textt": "b"}],
            "a text, or a mapping of rubric_id and rubric_content, for each rubric",
        ),
        ([{"text": "a", "id": 1}], "found a rubric without text"),
        (["a", "a"], "found 'a' twice, expected it once"),
        (
            [ADK, {**ADK, "rubricContent": {"textProperty": "b"}}],
            "found 'price' twice, expected it once",
        ),
    ],
)
def test_rubrics_that_cannot_be_meant_are_refused(rubrics: Any, mistake: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - compared as a whole
        RubricBasedFinalResponseQuality(rubrics)
    assert str(refusal.value) == mistake


# Hallucinations

RESPONSE = "Tea costs 3 euros. It comes from Mars!\n\n* Enjoy it"
SEARCH = ToolCall("search", {"q": "tea"}, result={"price": 3})


async def checked(
    judge: Hallucinations, *said: Any, response: str = RESPONSE
) -> tuple[Score, Scripted]:
    ask = Scripted(*said)
    return await judge.judge(
        invocation(SEARCH, user_input="tea?", final_response=response), None, ask
    ), ask


async def test_sentences_are_numbered_here_so_that_none_is_left_out() -> None:
    _, ask = await checked(Hallucinations(), lists("supported", "unsupported", X))
    assert ask.questions[0].data == {
        "user_input": "tea?",
        "trajectory": [{"tool": "search", "arguments": {"q": "tea"}, "result": {"price": 3}}],
        "sentences": [
            {"number": 1, "sentence": "Tea costs 3 euros."},
            {"number": 2, "sentence": "It comes from Mars!"},
            {"number": 3, "sentence": "* Enjoy it"},
        ],
    }


@pytest.mark.parametrize(
    ("samples", "said", "value", "reason"),
    [
        (1, [lists("supported", "unsupported", X)], pytest.approx(2 / 3), None),
        (1, [lists("contradictory", "disputed", "unsupported")], 0.0, None),
        (1, [lists(X, X, X)], 1.0, None),
        (1, [lists("supported")], None, "judge_malformed"),
        (1, [lists("supported", "supported", "maybe")], None, "judge_malformed"),
        (
            3,
            [lists("supported", "unsupported", X), lists(X, "disputed", "supported")],
            pytest.approx(2 / 3),
            None,
        ),
        (
            3,
            [
                lists("supported", "disputed", X),
                lists("unsupported", "supported", X),
                lists("disputed", "contradictory", X),
            ],
            1 / 3,
            None,
        ),
        (
            2,
            [lists("supported", "supported", X), lists("unsupported", "supported", X)],
            None,
            "judge_undecided",
        ),
    ],
)
async def test_the_share_of_sentences_that_are_supported_or_need_no_support(
    samples: int, said: list[str], value: Any, reason: str | None
) -> None:
    score, _ = await checked(Hallucinations(samples=samples), *said)
    assert (score.value, score.reason) == (value, reason)


async def test_a_hallucination_is_named() -> None:
    score, _ = await checked(Hallucinations(), lists("supported", "contradictory", X))
    assert score.explanation == "2 supported, 1 unsupported of 3 sentences; It comes from Mars!"
    assert score.details["sentences"][1] == {
        "text": "It comes from Mars!",
        "verdict": "contradictory",
        "reasoning": "because 2",
    }


@pytest.mark.parametrize(
    ("judge", "response", "reason", "line"),
    [
        (Hallucinations(), "", "not_applicable", "the response has no sentences"),
        (Hallucinations(), " 👍 … \n---\n", "not_applicable", "the response has no sentences"),
        (
            Hallucinations(),
            "Tea. " * 201,
            "too_long",
            "the response has 201 sentences; at most 200 are judged",
        ),
        (
            Hallucinations(max_chars=500),
            "tea " * 500,
            "too_long",
            "sentences takes more than 500 characters",
        ),
    ],
)
async def test_nobody_is_asked_about_no_sentences_or_too_many(
    judge: Hallucinations, response: str, reason: str, line: str
) -> None:
    score, ask = await checked(judge, lists(X), response=response)
    assert (score.reason, score.explanation, ask.questions) == (reason, line, [])


async def test_nothing_is_judged_whose_support_may_have_been_cut_away() -> None:
    call = ToolCall("search", {}, result="tea " * 500)
    ask = Scripted(lists(X))
    score = await Hallucinations(max_chars=600).judge(invocation(call), None, ask)
    assert (score.reason, score.explanation, ask.questions) == (
        "too_long",
        "trajectory takes more than 600 characters",
        [],
    )


def test_adks_option_is_understood_and_refused_where_it_cannot_be_kept() -> None:
    assert Hallucinations(evaluate_intermediate_nl_responses=False) == Hallucinations()
    with pytest.raises(ValueError, match="texts between tool calls are not recorded"):
        Hallucinations(evaluate_intermediate_nl_responses=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four…", ["One.", "Two!", "Three?", "Four…"]),
        (
            "It costs 3.50 euros, e.g. at Dr. Smith's. Fine",
            ["It costs 3.50 euros, e.g. at Dr. Smith's.", "Fine"],
        ),
        ("J. R. R. Tolkien wrote it. Yes.", ["J. R. R. Tolkien wrote it.", "Yes."]),
        (
            "There are three:\n1. Apples are red.\n2) Pears\n- Bananas. And more",
            ["There are three:", "1. Apples are red.", "2) Pears", "- Bananas.", "And more"],
        ),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        (
            "See pathgauge.io. it says so. **Really.** Yes",
            ["See pathgauge.io. it says so.", "**Really.**", "Yes"],
        ),
        ("Wait... what? No.", ["Wait...", "what?", "No."]),
        ("お茶です。美味しい！はい", ["お茶です。", "美味しい！", "はい"]),
        (
            "| a | b. |\n|---|---|\n| 1 | 2. |\nDone.",
            ["| a | b. |\n|---|---|\n| 1 | 2. |", "Done."],
        ),
        ("Run:\n```\na. B\n\nc. D\n```\nDone.", ["Run:", "```\na. B\n\nc. D\n```", "Done."]),
        ("```\nnever closed. So", ["```\nnever closed. So"]),
        ("---\n\n👍\n", []),
        ("", []),
    ],
)
def test_a_text_is_split_into_its_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize("unit", [".", ". ", "a. ", "“.” ", "。", "x\n", "|\n", "``` ", "\t* "])
def test_a_long_text_is_split_in_time(unit: str) -> None:
    assert len(sentences(unit * 100_000)) <= 100_000

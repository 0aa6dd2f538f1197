"""Judges of several items: rubrics, and the sentences of a response."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import (
    Hallucinations,
    RubricBasedFinalResponseQuality,
    RubricBasedToolUseQuality,
    Score,
)
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.judges.rubrics import Rubric
from pathgauge.scorers.judges.sentences import sentences
from pathgauge.scorers.types import ModelCall, ReferenceTurn, ToolCall, TurnRubric
from support.scripted_models import ScriptedAnswers, checklist_answer, failure, verdict_answer

RUBRICS = ("It is polite.", "It names the price.", "It offers help.")
Y, N, X = "yes", "no", "not_applicable"
SLOW = failure("judge_timeout")


async def rated(samples: int, *answers: Any) -> tuple[Score, int]:
    ask = ScriptedAnswers(*answers)
    judge = RubricBasedFinalResponseQuality(RUBRICS, samples=samples)
    return await judge.judge(invocation(user_input="how much?"), None, ask), len(ask.questions)


@pytest.mark.parametrize(
    ("samples", "answers", "value", "reason", "asked"),
    [
        (1, [checklist_answer(Y, N, Y)], pytest.approx(2 / 3), None, 1),
        (1, [checklist_answer(Y, X, N)], 0.5, None, 1),
        (1, [checklist_answer(Y, X, X)], 1.0, None, 1),
        (1, [checklist_answer(X, X, X)], None, "not_applicable", 1),
        (3, [checklist_answer(Y, N, Y), checklist_answer(Y, N, Y)], pytest.approx(2 / 3), None, 2),
        (
            3,
            [checklist_answer(Y, N, Y), checklist_answer(N, N, Y), checklist_answer(N, Y, Y)],
            pytest.approx(1 / 3),
            None,
            3,
        ),
        (
            3,
            [checklist_answer(Y, N, Y), SLOW, checklist_answer(Y, N, Y)],
            pytest.approx(2 / 3),
            None,
            3,
        ),
        (
            3,
            [checklist_answer(Y, N, Y), checklist_answer(N, N, Y), checklist_answer(X, N, Y)],
            None,
            "judge_undecided",
            3,
        ),
        (2, [checklist_answer(Y, N, Y), checklist_answer(N, N, Y)], None, "judge_undecided", 2),
        (
            4,
            [checklist_answer(Y, N, Y), checklist_answer(N, N, Y), checklist_answer(X, N, Y)],
            None,
            "judge_undecided",
            3,
        ),
        (
            4,
            [checklist_answer(Y, Y, Y), checklist_answer(N, Y, Y), checklist_answer(X, N, Y)],
            None,
            "judge_undecided",
            3,
        ),
        (3, [SLOW, SLOW], None, "judge_timeout", 2),
        (1, [checklist_answer(Y, N)], None, "judge_malformed", 1),
        (1, [checklist_answer(Y, N, Y, Y)], None, "judge_malformed", 1),
        (1, [checklist_answer(Y, N, "unknown")], None, "judge_malformed", 1),
        (1, [verdict_answer("yes")], None, "judge_malformed", 1),
    ],
)
async def test_the_score_is_the_mean_of_the_majorities_of_the_rubrics(
    samples: int, answers: list[Any], value: Any, reason: str | None, asked: int
) -> None:
    score, questions = await rated(samples, *answers)
    assert (score.value, score.reason, questions) == (value, reason, asked)


async def test_details_have_each_rubric() -> None:
    score, _ = await rated(
        3, checklist_answer(Y, N, X), checklist_answer(N, N, X), checklist_answer(Y, N, X)
    )
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


async def test_the_reasoning_of_a_rubric_is_that_of_the_majority() -> None:
    score, _ = await rated(
        3,
        checklist_answer(N, N, N),
        checklist_answer(Y, N, N).replace("because 1", "it is"),
        checklist_answer(Y, N, N),
    )
    assert score.details["rubrics"][0] == {
        "text": "It is polite.",
        "verdict": "yes",
        "reasoning": "it is",
    }


async def test_rubrics_keep_their_order() -> None:
    first, second = (
        RubricBasedToolUseQuality(("Z first.", "A\nsecond.")),
        RubricBasedToolUseQuality(("Another.",)),
    )
    asks = ScriptedAnswers(checklist_answer(Y, Y)), ScriptedAnswers(checklist_answer(Y))
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


def test_rubrics_of_adk_are_read_unchanged() -> None:
    def rubrics(written: Any) -> tuple[Rubric, ...]:
        return RubricBasedToolUseQuality((written,)).statements

    assert rubrics(ADK) == (Rubric("It names the price.", "price"),)
    assert rubrics(ADK_IN_PYTHON) == (Rubric("It names the price.", "price", "In euros."),)
    assert rubrics("It names the price.") == (Rubric("It names the price."),)


@pytest.mark.parametrize(
    ("rubrics", "error"),
    [
        ("It is polite.", "a list of up to 100 rubrics"),
        (["a"] * 101, "a list of up to 100 rubrics"),
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
def test_invalid_rubrics_are_refused(rubrics: Any, error: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        RubricBasedFinalResponseQuality(rubrics)
    assert str(refusal.value) == error


# Hallucinations

RESPONSE = "Tea costs 3 euros. It comes from Mars!\n\n* Enjoy it"
SEARCH = ToolCall("search", {"q": "tea"}, result={"price": 3})


async def checked(
    judge: Hallucinations, *answers: Any, response: str = RESPONSE
) -> tuple[Score, ScriptedAnswers]:
    ask = ScriptedAnswers(*answers)
    return await judge.judge(
        invocation(SEARCH, user_input="tea?", final_response=response), None, ask
    ), ask


async def test_sentences_are_numbered_by_the_judge() -> None:
    _, ask = await checked(Hallucinations(), checklist_answer("supported", "unsupported", X))
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
    ("samples", "answers", "value", "reason"),
    [
        (1, [checklist_answer("supported", "unsupported", X)], pytest.approx(2 / 3), None),
        (1, [checklist_answer("contradictory", "disputed", "unsupported")], 0.0, None),
        (1, [checklist_answer(X, X, X)], 1.0, None),
        (1, [checklist_answer("supported")], None, "judge_malformed"),
        (1, [checklist_answer("supported", "supported", "maybe")], None, "judge_malformed"),
        (
            3,
            [
                checklist_answer("supported", "unsupported", X),
                checklist_answer(X, "disputed", "supported"),
            ],
            pytest.approx(2 / 3),
            None,
        ),
        (
            3,
            [
                checklist_answer("supported", "disputed", X),
                checklist_answer("unsupported", "supported", X),
                checklist_answer("disputed", "contradictory", X),
            ],
            1 / 3,
            None,
        ),
        (
            2,
            [
                checklist_answer("supported", "supported", X),
                checklist_answer("unsupported", "supported", X),
            ],
            None,
            "judge_undecided",
        ),
    ],
)
async def test_the_score_is_the_share_of_supported_sentences(
    samples: int, answers: list[str], value: Any, reason: str | None
) -> None:
    score, _ = await checked(Hallucinations(samples=samples), *answers)
    assert (score.value, score.reason) == (value, reason)


async def test_the_explanation_quotes_a_hallucination() -> None:
    score, _ = await checked(Hallucinations(), checklist_answer("supported", "contradictory", X))
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
            "sentences has more than 500 characters",
        ),
    ],
)
async def test_the_model_is_not_asked_about_no_or_too_many_sentences(
    judge: Hallucinations, response: str, reason: str, line: str
) -> None:
    score, ask = await checked(judge, checklist_answer(X), response=response)
    assert (score.reason, score.explanation, ask.questions) == (reason, line, [])


async def test_too_long_evidence_is_not_judged() -> None:
    call = ToolCall("search", {}, result="tea " * 500)
    ask = ScriptedAnswers(checklist_answer(X))
    score = await Hallucinations(max_chars=600).judge(invocation(call), None, ask)
    assert (score.reason, score.explanation, ask.questions) == (
        "too_long",
        "trajectory has more than 600 characters",
        [],
    )


OF_RESPONSE = TurnRubric("It is short.", "short", "At most 5 words.")
OF_TOOLS = TurnRubric("It searches once.", of="tool_use")


async def test_rubrics_of_the_reference_are_judged_after_those_of_the_criterion() -> None:
    ask = ScriptedAnswers(checklist_answer(Y, N))
    judge = RubricBasedFinalResponseQuality(("It is polite.",))
    turn = ReferenceTurn(rubrics=(OF_TOOLS, OF_RESPONSE, TurnRubric("It is polite."), OF_RESPONSE))
    score = await judge.judge(invocation(user_input="how much?"), turn, ask)
    assert score.value == 0.5
    assert [one["text"] for one in score.details["rubrics"]] == [
        "It is polite.",
        "It is short. At most 5 words.",
    ]
    (question,) = ask.questions
    assert question.data["rubrics"] == [{"number": 2, "rubric": "It is short. At most 5 words."}]
    assert question.instructions.endswith("- `rubrics`: further rubrics, with their numbers")


async def test_rubrics_of_the_reference_are_enough() -> None:
    ask = ScriptedAnswers(checklist_answer(Y))
    turn = ReferenceTurn(rubrics=(OF_TOOLS, OF_RESPONSE))
    call = ToolCall("search", {}, result="tea")
    score = await RubricBasedToolUseQuality().judge(invocation(call), turn, ask)
    assert score.value == 1.0
    assert ask.questions[0].data["rubrics"] == [{"number": 1, "rubric": "It searches once."}]


async def test_rubrics_of_the_reference_change_nothing_for_turns_without_them() -> None:
    ask = ScriptedAnswers(checklist_answer(Y), checklist_answer(Y))
    judge = RubricBasedFinalResponseQuality(("It is polite.",))
    actual = invocation(user_input="how much?")
    await judge.judge(actual, None, ask)
    await judge.judge(actual, ReferenceTurn(rubrics=(OF_TOOLS,)), ask)
    assert ask.questions[0] == ask.questions[1]
    assert "rubrics" not in ask.questions[0].data


@pytest.mark.parametrize(
    ("own", "count", "reason"),
    [((), 0, "no_reference"), (("It is polite.",), 100, "too_long"), ((), 101, "too_long")],
)
async def test_none_and_too_many_rubrics_are_not_judged(
    own: tuple[str, ...], count: int, reason: str
) -> None:
    ask = ScriptedAnswers()
    turn = ReferenceTurn(rubrics=tuple(TurnRubric(f"It has {n}.") for n in range(count)))
    score = await RubricBasedFinalResponseQuality(own).judge(invocation(), turn, ask)
    assert (score.value, score.reason, ask.questions) == (None, reason, [])


async def test_texts_between_tool_calls_are_judged_if_the_option_says_so() -> None:
    calls = (ModelCall("a", text="I search. It is green."), ModelCall("b", text="It is red."))
    actual = invocation(final_response="It is red.", model_calls=calls)
    ask = ScriptedAnswers(checklist_answer("not_applicable", "unsupported", "supported"))
    judge = Hallucinations(evaluate_intermediate_nl_responses=True)
    score = await judge.judge(actual, None, ask)
    assert score.value == pytest.approx(2 / 3)
    (question,) = ask.questions
    assert [one["sentence"] for one in question.data["sentences"]] == [
        "I search.",
        "It is green.",
        "It is red.",
    ]
    assert "what the agent said while it worked" in question.instructions
    assert judge.template != Hallucinations().template
    assert (judge.extras.model_texts, Hallucinations().extras.model_texts) == (True, False)
    unknown = await judge.judge(invocation(final_response="It is red."), None, ask)
    assert unknown.reason == "texts_not_recorded"


async def test_only_earlier_calls_are_evidence_for_a_text_between_tool_calls() -> None:
    tools = (
        ToolCall("search", {}, result="green", start_ns=20, end_ns=30),
        ToolCall("transfer", {}, kind="handoff", start_ns=30),
        ToolCall("ask", {}, result="red", start_ns=50, end_ns=60),
    )
    said = (
        ModelCall("a", text="I search.", start_ns=0, end_ns=10),
        ModelCall("b", text="It is green. Or red.", start_ns=30, end_ns=45),
        ModelCall("c", text="It is red.", start_ns=70, end_ns=80),
    )
    actual = invocation(*tools, final_response="It is red.", model_calls=said)
    judge = Hallucinations(evaluate_intermediate_nl_responses=True)
    data = judge.prompt_data(actual, None)
    assert not isinstance(data, Score)
    assert data["sentences"] == [
        {"number": 1, "sentence": "I search.", "calls_before": []},
        {"number": 2, "sentence": "It is green.", "calls_before": [1, 2]},
        {"number": 3, "sentence": "Or red.", "calls_before": [1, 2]},
        {"number": 4, "sentence": "It is red."},
    ]
    assert [(call["number"], call["tool"]) for call in data["trajectory"]] == [
        (1, "search"),
        (2, "transfer"),
        (3, "ask"),
    ]


async def test_without_times_all_calls_are_evidence_for_a_text_between_them() -> None:
    said = (ModelCall("a", text="I search."), ModelCall("b", text="It is red."))
    call = ToolCall("search", {}, result="red")
    actual = invocation(call, final_response="It is red.", model_calls=said)
    data = Hallucinations(evaluate_intermediate_nl_responses=True).prompt_data(actual, None)
    assert not isinstance(data, Score)
    assert data["sentences"][0] == {"number": 1, "sentence": "I search.", "calls_before": None}


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
        ("He answers “No.” Then he left.", ["He answers “No.”", "Then he left."]),
        (
            "See pathgauge.io. it verdict_answer so. **Really.** Yes",
            ["See pathgauge.io. it verdict_answer so.", "**Really.**", "Yes"],
        ),
        ("Wait... what? No.", ["Wait...", "what?", "No."]),
        ("お茶です。美味しい！はい", ["お茶です。", "美味しい！", "はい"]),
        ("पैसे वापस आएंगे। कल तक।", ["पैसे वापस आएंगे।", "कल तक।"]),
        ("هل وصل الطلب؟ نعم", ["هل وصل الطلب؟", "نعم"]),
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
def test_text_is_split_into_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.slow
@pytest.mark.parametrize("unit", [".", ". ", "a. ", "“.” ", "。", "x\n", "|\n", "``` ", "\t* "])
def test_long_texts_are_split_quickly(unit: str) -> None:
    assert len(sentences(unit * 100_000)) <= 100_000

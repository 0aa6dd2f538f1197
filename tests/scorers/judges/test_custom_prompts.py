"""User-defined prompts: variables, data, and configuration errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pathgauge import LlmJudge, Pointwise, Scorer
from pathgauge.collector.config.plugins.scorers import build_scorer
from pathgauge.scorers.authoring.builders import invocation, reference_turn, tool_call
from pathgauge.scorers.judges.model_judge import ModelJudge
from support.scripted_models import FirstFittingAnswer, ScriptedAnswers, verdict_answer

ACTUAL = invocation(
    tool_call("search", q="tea"), user_input="tea?", final_response="{user_input} and {prompt}"
)
EXPECTED = reference_turn(response="Green tea.")
NAMES = "user_input, trajectory, response, expected_response, expected_trajectory, tools"
HINT = f"found 'respnse', expected one of {NAMES}; did you mean 'response'?"


async def question(judge: ModelJudge) -> tuple[str, Mapping[str, Any]]:
    ask = FirstFittingAnswer()
    await judge.judge(ACTUAL, EXPECTED, ask)
    return ask.questions[0].instructions, ask.questions[0].data


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Is {response} fine?", "Is `response` fine?"),
        ("<trajectory>\n{outputs}\n</trajectory>", "<trajectory>\n`trajectory`\n</trajectory>"),
        ("Is {final_response} an answer to {prompt}?", "Is `response` an answer to `user_input`?"),
        ("Is {response} as {{response}} asks?", "Is `response` as {response} asks?"),
        ('Rate {response}: {"score": 1}, {{"score": 0}}, {}, {0}, {1,5}, { response }.', None),
        ("Is {response.__class__} {response!r} {response[0]} fine? {response}", None),
        ("Is {response} 100 % fine, $response ${x}?", None),
    ],
)
async def test_a_variable_is_replaced_by_the_name_of_a_member(
    prompt: str, text: str | None
) -> None:
    if text is None and "${x}" in prompt:
        with pytest.raises(ValueError, match="found 'x'"):
            LlmJudge(prompt)
        return
    instructions, _ = await question(LlmJudge(prompt))
    assert instructions.startswith(
        (text or prompt.replace("{response}", "`response`")) + "\n\nThe data has these members"
    )


@pytest.mark.parametrize(
    ("prompt", "inputs", "members"),
    [
        ("Is it fine?", (), ["user_input", "trajectory", "response"]),
        ("Is {response} fine?", (), ["response"]),
        ("Is {response} to {prompt} or {response} fine?", (), ["response", "user_input"]),
        ("Is it fine?", ("predicted_trajectory", "prompt"), ["trajectory", "user_input"]),
        ("Is {response} fine?", ("reference", "response"), ["expected_response", "response"]),
    ],
)
async def test_the_data_has_the_inputs_and_then_the_variables(
    prompt: str, inputs: tuple[str, ...], members: list[str]
) -> None:
    _, data = await question(LlmJudge(prompt, inputs=inputs))
    assert list(data) == members


async def test_agent_text_never_becomes_part_of_the_instructions() -> None:
    instructions, data = await question(LlmJudge("Is {response} fine?"))
    assert data["response"] == "{user_input} and {prompt}"
    assert "and {prompt}" not in instructions


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"prompt": " \n"}, "prompt: found no text, expected what to judge"),
        (
            {"prompt": "Is {respnse} fine?"},
            f"prompt: {HINT}; {{{{respnse}}}} is the word in braces",
        ),
        ({"prompt": "Is it fine?", "inputs": ["respnse"]}, f"inputs: {HINT}"),
        (
            {"prompt": "Was {user_input} polite?"},
            (
                "prompt: found user_input, expected response or trajectory among them; else there"
                " is nothing to judge"
            ),
        ),
        (
            {"prompt": "Is it fine?", "inputs": ["reference", "prompt"]},
            (
                "prompt: found expected_response, user_input, expected response or trajectory among"
                " them; else there is nothing to judge"
            ),
        ),
        (
            {"prompt": "Is it fine?", "choices": [1]},
            "choices: found 1, expected several different numbers",
        ),
        (
            {"prompt": "Is it fine?", "choices": [1, 1.0]},
            "choices: found 1, 1, expected several different numbers",
        ),
        (
            {"prompt": "Is it fine?", "range": [1, 1]},
            "range: found 1 and 1, expected a lower and a higher number",
        ),
        (
            {"prompt": "Is it fine?", "range": [0, float("inf")]},
            "range: found 0 and inf, expected a lower and a higher number",
        ),
        (
            {"prompt": "Is it fine?", "average": "mode"},
            "average: found 'mode', expected one of mean, median",
        ),
    ],
)
def test_invalid_prompts_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        LlmJudge(**options)
    assert str(refusal.value) == error


def range_of(judge: Scorer) -> tuple[float, float, bool]:
    return judge.low, judge.high, judge.needs_reference


@pytest.mark.parametrize(
    ("options", "answers", "value", "declared"),
    [
        ({}, [0.75], 0.75, (0.0, 1.0, False)),
        ({"range": (1, 10), "samples": 2}, [7, 8], 7.5, (1.0, 10.0, False)),
        ({"choices": (0, 0.5, 1), "samples": 2}, [0.5, 1], 0.75, (0.0, 1.0, False)),
        ({"choices": (-1, 1), "samples": 3}, [1, -1, 1], 1.0, (-1.0, 1.0, False)),
        ({"inputs": ("response", "reference")}, [0.5], 0.5, (0.0, 1.0, True)),
    ],
)
async def test_options_determine_range_and_need_for_a_reference(
    options: dict[str, Any], answers: list[float], value: float, declared: tuple[float, float, bool]
) -> None:
    judge = LlmJudge("Is it fine?", **options)
    assert (
        await judge.judge(ACTUAL, EXPECTED, ScriptedAnswers(*map(verdict_answer, answers)))
    ).value == value
    assert range_of(judge) == declared


# Vertex AI's PointwiseMetric

CRITERIA = {"Zest": "Is it lively?", "Accuracy": "Is it right?"}
RUBRIC = {10: "perfect", 9: "good", 1: "bad"}


async def test_a_templated_metric_keeps_the_configured_order() -> None:
    judge = Pointwise(
        CRITERIA,
        RUBRIC,
        input_variables=("reference", "prompt"),
        metric_definition="How good it is.",
        evaluation_steps={"2": "read", "1": "judge"},
        instruction="Rate it.",
    )
    instructions, data = await question(judge)
    text, _, legend = instructions.partition("\n\n# Data\n")
    assert (
        text
        == "# Instruction\nRate it.\n\n# Metric definition\nHow good it is.\n\n# Criteria\nZest: Is"
        " it lively?\nAccuracy: Is it right?\n\n# Rating rubric\n10: perfect\n9: good\n1:"
        " bad\n\n# Evaluation steps\n2: read\n1: judge"
    )
    assert list(data) == ["expected_response", "user_input", "response"]
    assert [line.partition(":")[0] for line in legend.splitlines()[1:]] == [
        "- `expected_response`",
        "- `user_input`",
        "- `response`",
    ]
    assert range_of(judge) == (1.0, 10.0, True)


@pytest.mark.parametrize(
    ("rubric", "answers", "value"),
    [
        ({"1": "follows", "0": "does not"}, [1, 0, 1], 1.0),
        ({1: "bad", 3: "fair", 5: "good"}, [5, 3], 4.0),
        ({0.5: "half", 1: "all"}, [0.5], 0.5),
    ],
)
async def test_two_ratings_are_voted_on_and_more_are_averaged(
    rubric: Any, answers: list[float], value: float
) -> None:
    judge = Pointwise(CRITERIA, rubric, samples=len(answers))
    assert (
        await judge.judge(ACTUAL, None, ScriptedAnswers(*map(verdict_answer, answers)))
    ).value == value


async def test_a_rating_outside_the_rubric_is_refused() -> None:
    assert (
        await Pointwise(CRITERIA, RUBRIC).judge(ACTUAL, None, ScriptedAnswers(verdict_answer(5)))
    ).reason == "judge_malformed"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"criteria": {}}, "criteria: found nothing, expected what to look at"),
        ({"rating_rubric": {}}, "rating_rubric: found nothing, expected several different numbers"),
        (
            {"rating_rubric": {1: "good"}},
            "rating_rubric: found 1, expected several different numbers",
        ),
        (
            {"rating_rubric": {"good": "good", 0: "bad"}},
            "rating_rubric: found 'good', expected numbers as keys",
        ),
        (
            {"rating_rubric": {"1": "good", "1.0": "fair", "0": "bad"}},
            "rating_rubric: found 1, 1, 0, expected several different numbers",
        ),
        (
            {"rating_rubric": {"nan": "good", 0: "bad"}},
            "rating_rubric: found nan, 0, expected several different numbers",
        ),
        ({"input_variables": ["respnse"]}, f"input_variables: {HINT}"),
    ],
)
def test_invalid_templated_metrics_are_refused(options: dict[str, Any], error: str) -> None:
    plain: dict[str, Any] = {"criteria": CRITERIA, "rating_rubric": RUBRIC}
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        Pointwise(**(plain | options))
    assert str(refusal.value) == error


def test_ratings_may_be_strings() -> None:
    built = build_scorer(
        Pointwise,
        {"criteria": CRITERIA, "rating_rubric": {"10": "perfect", "9": "good", "1": "bad"}},
    )
    assert built == Pointwise(CRITERIA, RUBRIC)


# Prompts from the documentation of the tools that introduced these metrics

SUPPORT_EVAL_PROMPT = """
You are evaluating a customer support agent. Score the trajectory on:
1. Did the agent resolve the customer's issue?
2. Did the agent ask for approval before sensitive operations?
3. Was the response empathetic and professional?
4. Did the agent avoid unnecessary tool calls?

Score 1.0 if all criteria met, 0.5 for partial, 0.0 for failure.
Explain your reasoning.
"""

TRAJECTORY_ACCURACY_PROMPT_WITH_REFERENCE = """You are an expert data labeler.
Your task is to grade the accuracy of an AI agent's internal trajectory.

Based on the following reference trajectory:

<reference_trajectory>
{reference_outputs}
</reference_trajectory>

Grade this actual trajectory:

<trajectory>
{outputs}
</trajectory>
"""

RESPONSE_FOLLOWS_TRAJECTORY = {
    "criteria": {
        "Follows trajectory": (
            "Evaluate whether the agent's response logically follows from the "
            "sequence of actions it took. Consider these sub-points:\n"
            "  - Does the response reflect the information gathered during the trajectory?\n"
            "  - Is the response consistent with the goals and constraints of the task?\n"
            "  - Are there any unexpected or illogical jumps in reasoning?\n"
            "Provide specific examples from the trajectory and response to support your evaluation."
        )
    },
    "rating_rubric": {"1": "Follows trajectory", "0": "Does not follow trajectory"},
    "input_variables": ["prompt", "predicted_trajectory"],
}


async def test_the_prompt_of_the_evaluator_catalogue_works_unchanged() -> None:
    judge = LlmJudge(SUPPORT_EVAL_PROMPT, choices=(0, 0.5, 1))
    ask = ScriptedAnswers(verdict_answer(0.5, "No approval was asked for."))
    score = await judge.judge(ACTUAL, None, ask)
    assert (score.value, score.explanation) == (0.5, "No approval was asked for.")
    [asked] = ask.questions
    assert asked.instructions.startswith(SUPPORT_EVAL_PROMPT.strip())
    assert asked.data["trajectory"] == [{"tool": "search", "arguments": {"q": "tea"}}]


async def test_the_prompt_of_langchain_works_unchanged() -> None:
    judge = LlmJudge(TRAJECTORY_ACCURACY_PROMPT_WITH_REFERENCE)
    assert range_of(judge) == (0.0, 1.0, True)
    instructions, data = await question(judge)
    assert "<trajectory>\n`trajectory`\n</trajectory>" in instructions
    assert list(data) == ["expected_trajectory", "trajectory"]


async def test_the_templated_metric_of_vertex_ai_works_unchanged() -> None:
    judge = build_scorer(Pointwise, RESPONSE_FOLLOWS_TRAJECTORY)
    assert isinstance(judge, Pointwise)
    ask = ScriptedAnswers(verdict_answer(1, "It does."))
    score = await judge.judge(ACTUAL, None, ask)
    assert (score.value, score.explanation) == (1.0, "1 in 1 of 1 answer: It does.")
    assert list(ask.questions[0].data) == ["user_input", "trajectory", "response"]

"""Criteria that ask a model: in the syntax of ADK and of pathgauge, and their errors."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import (
    FinalResponseMatch,
    Hallucinations,
    LlmJudge,
    Pointwise,
    ResponseEvaluationScore,
    RubricBasedFinalResponseQuality,
    RubricBasedToolUseQuality,
    Safety,
    Scorer,
)
from pathgauge.collector.config import criteria
from pathgauge.collector.config.criteria import Location
from pathgauge.collector.core.documents import ConfigError, yaml_source
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.composite import Composite
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.rubrics import Rubric


def build(text: str) -> tuple[Criterion, ...]:
    (document,) = yaml_source.read(text, "c.yaml")
    return criteria.build(document.data, Location(document, ()))


ADK: list[tuple[str, float, Scorer]] = [
    ('{"response_evaluation_score": 3.5}', 3.5, ResponseEvaluationScore()),
    ('{"safety_v1": 1.0}', 1.0, Safety()),
    ('{"final_response_match_v2": 0.8}', 0.8, FinalResponseMatch()),
    (
        '{"hallucinations_v1": {"threshold": 0.8, "evaluateIntermediateNlResponses": false}}',
        0.8,
        Hallucinations(),
    ),
    (
        (
            '{"final_response_match_v2": {"threshold": 0.8, "judgeModelOptions": {"judgeModel":'
            ' "gemini-2.5-flash", "numSamples": 3}}}'
        ),
        0.8,
        FinalResponseMatch(model="gemini-2.5-flash", samples=3),
    ),
    (
        (
            '{"rubric_based_tool_use_quality_v1": {"threshold": 1.0, "judge_model_options":'
            ' {"judge_model": "m"}, "rubrics": [{"rubric_id": "geo", "rubric_content":'
            ' {"text_property": "GeoCoding is called first."}}]}}'
        ),
        1.0,
        RubricBasedToolUseQuality((Rubric("GeoCoding is called first.", "geo"),), model="m"),
    ),
    (
        (
            '{"rubric_based_final_response_quality_v1": {"threshold": 0.5, "rubrics":'
            ' [{"rubricId": "1", "rubricContent": {"textProperty": "It is short."}}]}}'
        ),
        0.5,
        RubricBasedFinalResponseQuality((Rubric("It is short.", "1"),)),
    ),
]


@pytest.mark.parametrize(("text", "threshold", "scorer"), ADK, ids=[text[2:40] for text, *_ in ADK])
def test_the_criteria_of_adk_are_accepted_unchanged(
    text: str, threshold: float, scorer: Scorer
) -> None:
    (criterion,) = build(text)
    assert (criterion.threshold, criterion.scorer) == (threshold, scorer)
    assert asks_model(criterion.scorer)


def test_a_prompt_of_your_own_is_a_criterion_with_its_own_range() -> None:
    (criterion,) = build(
        "polite: {scorer: llm_judge, threshold: 7, prompt: 'Is {response} polite?', range: [1, 10]}"
    )
    assert criterion == Criterion("polite", LlmJudge("Is {response} polite?", range=(1, 10)), 7)


def test_a_templated_metric_is_a_criterion_with_the_range_of_its_rubric() -> None:
    text = (
        "follows: {scorer: pointwise, threshold: 4, criteria: {A: b}, rating_rubric: {5: good, 1:"
        " bad}, input_variables: [prompt]}"
    )
    assert build(text) == (
        Criterion("follows", Pointwise({"A": "b"}, {5: "good", 1: "bad"}, ("prompt",)), 4),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "polite: {scorer: llm_judge, prompt: 'Was {user_input} polite?'}",
            "expected response or trajectory among them",
        ),
        (
            "polite: {scorer: llm_judge, prompt: 'Is {respnse} polite?'}",
            "did you mean 'response'?; {{respnse}} is the word in braces",
        ),
        ("polite: {scorer: llm_judge}", "1:9: polite.prompt: found nothing, expected this key"),
        (
            "polite: {scorer: llm_judge, threshold: 2, prompt: 'Is it polite?'}",
            "1:40: polite.threshold: found 2, expected a number from 0 to 1",
        ),
        (
            "response_evaluation_score: 0.5",
            "response_evaluation_score.threshold: found 0.5, expected a number from 1 to 5",
        ),
        (
            "safety_v1: {threshold: 1, judge_model_options: {judge: x}}",
            "judge_model_options: found 'judge', expected judge_model",
        ),
        (
            "rubric_based_tool_use_quality_v1: {threshold: 1, rubrics: a}",
            "found 'a', expected a list of up to 100 rubrics",
        ),
        (
            "follows: {scorer: pointwise, criteria: {A: b}, rating_rubric: {good: 1, bad: 0}}",
            "rating_rubric",
        ),
        ("trajectory_accuracy: {continous: true}", "did you mean 'continuous'?"),
    ],
)
def test_invalid_judges_are_rejected_at_the_start(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        build(text)
    assert expected in str(refusal.value)


def test_a_criterion_made_of_judges_asks_a_model() -> None:
    members = "latency: 60, safety_v1: {threshold: 1, model: small}"
    *_, both = build(
        f"{{{members}, all: {{scorer: composite, threshold: 1, of: [latency, safety_v1]}}}}"
    )
    *_, fast = build(f"{{{members}, all: {{scorer: composite, threshold: 1, of: [latency]}}}}")
    (billing,) = build("safety_v1: {threshold: 1, model: small, agent: billing}")
    assert isinstance(both.scorer, Composite)
    assert isinstance(billing.scorer, OfAgent)
    assert [asks_model(criterion.scorer) for criterion in (both, fast, billing)] == [
        True,
        False,
        True,
    ]
    judges: list[Any] = [both.scorer, billing.scorer]
    assert [(judge.model, judge.template) for judge in judges] == [("small", Safety().template)] * 2

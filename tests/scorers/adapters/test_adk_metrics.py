"""Metric functions with the signature of Google's ADK."""

from __future__ import annotations

import enum
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from pathgauge import ExpectedCall, Invocation, ReferenceTurn, Score, ToolCall
from pathgauge.collector.cli import app
from pathgauge.scorers.adapters.functions import from_function, scorer_class
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.authoring.contract import check_scorer

ACTUAL = invocation(
    ToolCall("search", {"q": "tea"}, "c1", '{"hits": 2}'),
    ToolCall("fetch", {"id": 7}, "c2", "done"),
    ToolCall("mail", {}, "c3", error="timeout"),
    user_input="Tea?",
    final_response="Green tea.",
)
TURN = ReferenceTurn("Tea?", (ExpectedCall("search", {"q": "tea"}),), "Green tea.")
UNKNOWN = Invocation("t", "s", "test", flags=frozenset({"no_tool_spans"}))


class EvalStatus(enum.Enum):
    PASSED = 1
    FAILED = 2
    NOT_EVALUATED = 3


@dataclass
class Result:
    overall_score: float | None = None
    overall_eval_status: EvalStatus = EvalStatus.NOT_EVALUATED
    per_invocation_results: list[Any] = field(default_factory=list)


def reading(read: Any) -> Score:
    """The score of a function that returns what `read` finds in the actual invocation."""

    def metric(eval_metric, actual_invocations, expected_invocations=None):  # type: ignore[no-untyped-def]
        (actual,) = actual_invocations
        return Result(float(bool(read(actual))))

    return from_function(metric).score(UNKNOWN, None)


def contents(one: Any) -> tuple[Any, ...]:
    return (
        [part.text for part in one.user_content.parts],
        [part.text for part in one.final_response.parts],
        [(use.name, use.args) for use in one.intermediate_data.tool_uses],
        [(response.name, response.response) for response in one.intermediate_data.tool_responses],
    )


def test_a_function_receives_what_it_would_read_in_adk() -> None:
    seen: list[Any] = []

    def metric(  # type: ignore[no-untyped-def]
        eval_metric, actual_invocations, expected_invocations=None, conversation_scenario=None
    ):
        (actual,), (expected,) = actual_invocations, expected_invocations
        seen.extend(map(contents, (actual, expected)))
        seen.append((actual.invocation_id, conversation_scenario, eval_metric.metric_name))
        return Result(0.5, EvalStatus.PASSED)

    score = from_function(metric).score(ACTUAL, TURN)
    assert score == Score(0.5, None, "returned 0.5")
    assert seen == [
        (
            ["Tea?"],
            ["Green tea."],
            [("search", {"q": "tea"}), ("fetch", {"id": 7}), ("mail", {})],
            [
                ("search", {"hits": 2}),
                ("fetch", {"result": "done"}),
                ("mail", {"error": "timeout"}),
            ],
        ),
        (["Tea?"], ["Green tea."], [("search", {"q": "tea"})], []),
        (ACTUAL.trace_id, None, "metric"),
    ]


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (lambda one: one.final_response, "response_not_recorded"),
        (lambda one: one.user_content.parts, "not_applicable"),
        (lambda one: one.intermediate_data.tool_uses, "tools_not_recorded"),
        (lambda one: one.intermediate_data.intermediate_responses, "texts_not_recorded"),
    ],
)
def test_something_that_was_not_recorded_gives_no_score(read: Any, reason: str) -> None:
    assert (reading(read).value, reading(read).reason) == (None, reason)


def test_an_attribute_that_adk_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError):
        reading(lambda one: one.answer)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (Result(1.0), (1.0, None, "returned 1.0")),
        (Result(), (None, "not_applicable", "the metric gave no score")),
        (
            Result(per_invocation_results=[SimpleNamespace(score=0.25)]),
            (0.25, None, "returned 0.25"),
        ),
        (
            Result(
                1,
                per_invocation_results=[
                    SimpleNamespace(rubric_scores=[SimpleNamespace(rationale="It is\nshort.")])
                ],
            ),
            (1.0, None, "It is short."),
        ),
    ],
)
def test_the_score_is_that_of_the_evaluation_result(
    returned: Result, expected: tuple[Any, ...]
) -> None:
    def metric(eval_metric, actual_invocations):  # type: ignore[no-untyped-def]
        return returned

    score = from_function(metric).score(ACTUAL, TURN)
    assert (score.value, score.reason, score.explanation) == expected


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (0.5, "returned float, expected an EvaluationResult with overall_score"),
        (
            Result(None, EvalStatus.FAILED),
            "returned the status FAILED without a score, expected overall_score",
        ),
    ],
)
def test_anything_else_is_an_error(returned: Any, expected: str) -> None:
    def metric(eval_metric, actual_invocations):  # type: ignore[no-untyped-def]
        return returned

    with pytest.raises(TypeError) as caught:
        from_function(metric).score(ACTUAL, TURN)
    assert str(caught.value) == expected


def test_a_function_that_must_have_expected_invocations_needs_a_reference() -> None:
    def metric(eval_metric, actual_invocations, expected_invocations):  # type: ignore[no-untyped-def]
        return Result(1.0)

    def free(eval_metric, actual_invocations, expected_invocations=None):  # type: ignore[no-untyped-def]
        return Result(float(expected_invocations is None))

    assert from_function(metric).score(ACTUAL, None).reason == "no_reference"
    assert from_function(free).score(ACTUAL, None).value == 1.0
    check_scorer(from_function(free))


def test_a_parameter_that_adk_does_not_pass_is_a_mistake() -> None:
    def metric(eval_metric, actual_invocations, limit):  # type: ignore[no-untyped-def]
        return Result(1.0)

    with pytest.raises(ValueError, match="found the parameter 'limit', expected those of ADK: "):
        scorer_class(metric)


def test_a_function_may_hand_the_invocation_back_in_a_model_of_adk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = SimpleNamespace()

    class IntermediateData(BaseModel):
        tool_uses: list[Any] = []

    class Model(BaseModel):
        intermediate_data: IntermediateData | None = None

    class PerInvocationResult(BaseModel):
        actual_invocation: Model
        expected_invocation: Model | None = None
        score: float | None = None

    module.Invocation, module.IntermediateData = Model, IntermediateData
    monkeypatch.setitem(sys.modules, "google.adk.evaluation.eval_case", module)

    def metric(eval_metric, actual_invocations, expected_invocations=None):  # type: ignore[no-untyped-def]
        (actual,), (expected,) = actual_invocations, expected_invocations
        assert isinstance(actual.intermediate_data, IntermediateData)
        result = PerInvocationResult(
            actual_invocation=actual,
            expected_invocation=expected,
            score=len(actual.intermediate_data.tool_uses) / 4,
        )
        return Result(per_invocation_results=[result])

    assert from_function(metric).score(ACTUAL, TURN) == Score(0.75, None, "returned 0.75")


CODE = """
from types import SimpleNamespace

def calls(eval_metric, actual_invocations, expected_invocations=None, conversation_scenario=None):
    limit = eval_metric.criterion.limit
    uses = actual_invocations[0].intermediate_data.tool_uses
    assert (eval_metric.metric_name, eval_metric.threshold) == ("few_calls", None)
    assert eval_metric.criterion.threshold == 2
    return SimpleNamespace(overall_score=float(limit - len(uses)), per_invocation_results=[])
"""


def test_custom_metrics_of_a_test_config_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("adk_evals.py").write_text(CODE)
    interval = {"min_value": -10, "max_value": 10}
    metric = {
        "code_config": {"name": "adk_evals.calls"},
        "metric_info": {"metric_name": "few_calls", "metric_value_info": {"interval": interval}},
    }
    written = {
        "criteria": {"few_calls": {"threshold": 2, "limit": 4}},
        "custom_metrics": {"few_calls": metric},
    }
    Path("test_config.json").write_text(json.dumps(written))
    row = {"id": "a", "predicted_trajectory": ["search"], "reference_trajectory": ["search"]}
    Path("table.json").write_text(json.dumps(row))
    result = CliRunner().invoke(app, ["score", "table.json", "--criteria", "test_config.json"])
    assert result.exit_code == 0, result.output
    cells = result.stdout.splitlines()[1].split("\t")
    assert cells[1:6] == ["a", "few_calls", "3.000", "", "2.000"]

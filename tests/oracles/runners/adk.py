"""Google ADK: the match of tool calls in its three ways, and the final response by ROUGE-1."""

from __future__ import annotations

from typing import Any

from google.adk.evaluation.eval_case import IntermediateData, Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.genai.types import Content, FunctionCall

from .lines import Case, Results, answer

NOTHING_ASKED = Content(parts=[])


def evaluator(
    match_type: ToolTrajectoryCriterion.MatchType, ignore_args: bool
) -> TrajectoryEvaluator:
    """ADK's evaluator as its `test_config.json` would set it."""
    criterion = ToolTrajectoryCriterion(
        threshold=1.0, match_type=match_type, ignore_args=ignore_args
    )
    return TrajectoryEvaluator(
        eval_metric=EvalMetric(metric_name="tool_trajectory_avg_score", criterion=criterion)
    )


EVALUATORS = {
    f"{match_type.name}{' ignore_args' if ignore_args else ''}": evaluator(match_type, ignore_args)
    for match_type in ToolTrajectoryCriterion.MatchType
    for ignore_args in (False, True)
}


def results(case: Case) -> Results:
    """The score of every evaluator."""
    actual, expected = invocation(case["actual"]), invocation(case["expected"])
    return {
        name: one.evaluate_invocations([actual], [expected]).overall_score
        for name, one in EVALUATORS.items()
    }


def invocation(calls: list[Any]) -> Invocation:
    """ADK's form of the calls."""
    uses = [FunctionCall(name=name, args=arguments) for name, arguments in calls]
    return Invocation(
        user_content=NOTHING_ASKED, intermediate_data=IntermediateData(tool_uses=uses)
    )


if __name__ == "__main__":
    answer(("google-adk",), results)

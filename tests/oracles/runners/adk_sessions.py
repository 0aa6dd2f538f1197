"""Google ADK: what it makes of the answers of a judge about a whole conversation; -1 stands for no
score.
"""

from __future__ import annotations

import asyncio
import logging

from google.adk.evaluation.eval_metrics import (
    EvalMetric,
    JudgeModelOptions,
    RubricsBasedCriterion,
)
from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
from google.adk.evaluation.evaluator import EvalStatus
from google.adk.evaluation.rubric_based_multi_turn_trajectory_evaluator import (
    RubricBasedMultiTurnTrajectoryEvaluator,
)

from .adk_judges import INVOCATION, Scripted, rated
from .lines import Case, Results, answer

NAME = "rubric_based_multi_turn_trajectory_quality_v1"


def results(case: Case) -> Results:
    """The score of the conversation, and how many of its turns are not evaluated by themselves."""
    criterion = RubricsBasedCriterion(
        threshold=0.5,
        judge_model_options=JudgeModelOptions(num_samples=len(case["ratings"])),
        rubrics=[
            Rubric(rubric_id=str(n), rubric_content=RubricContent(text_property=f"rubric {n}"))
            for n in range(case["rubrics"])
        ],
    )
    evaluator = RubricBasedMultiTurnTrajectoryEvaluator(
        EvalMetric(metric_name=NAME, criterion=criterion)
    )
    said = [rated(rating) for rating in case["ratings"]]
    evaluator._judge_model = Scripted(model="scripted", said=said)
    turns = [INVOCATION] * len(case["labels"])
    found = asyncio.run(evaluator.evaluate_invocations(turns, turns))
    before_last = found.per_invocation_results[:-1]
    left_out = [
        one
        for one in before_last
        if one.score is None and one.eval_status is EvalStatus.NOT_EVALUATED
    ]
    overall = found.overall_score
    return {
        "rubrics of the conversation": -1.0 if overall is None else overall,
        "turns without a score": float(len(left_out)),
    }


if __name__ == "__main__":
    logging.disable()
    answer(("google-adk",), results)

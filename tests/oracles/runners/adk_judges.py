"""Google ADK: what it makes of the answers of a judge, by majority and by rubrics; -1 stands for no
score.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import (
    EvalMetric,
    JudgeModelOptions,
    LlmAsAJudgeCriterion,
    RubricsBasedCriterion,
)
from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
from google.adk.evaluation.final_response_match_v2 import FinalResponseMatchV2Evaluator
from google.adk.evaluation.rubric_based_final_response_quality_v1 import (
    RubricBasedFinalResponseQualityV1Evaluator,
)
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, Part

from .lines import Case, Results, answer

SAID = Content(parts=[Part(text="said")])
INVOCATION = Invocation(user_content=SAID, final_response=SAID)
VERDICTS = {"yes": "yes", "no": "no", "not_applicable": "n/a"}


class Scripted(BaseLlm):
    """A model that says these texts one after the other; without a text it fails."""

    said: list[str | None]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The next text."""
        text = self.said.pop(0)
        if text is None:
            raise RuntimeError("failed")
        yield LlmResponse(content=Content(parts=[Part(text=text)]))


def results(case: Case) -> Results:
    """Of labels, as samples of one invocation and as those of one invocation each; of verdicts on
    rubrics, their mean.
    """
    said = [labelled(label) for label in case["labels"]]
    return {
        "majority": matched(said, 1, len(said)),
        "share": matched(said, len(said), 1),
        "rubrics": rubrics(case),
    }


def matched(said: list[str | None], invocations: int, samples: int) -> float:
    """The score of final_response_match_v2."""
    criterion = LlmAsAJudgeCriterion(
        threshold=0.5, judge_model_options=JudgeModelOptions(num_samples=samples)
    )
    evaluator = FinalResponseMatchV2Evaluator(
        EvalMetric(metric_name="final_response_match_v2", criterion=criterion)
    )
    return score(evaluator, said, invocations)


def rubrics(case: Case) -> float:
    """The score of rubric_based_final_response_quality_v1."""
    criterion = RubricsBasedCriterion(
        threshold=0.5,
        judge_model_options=JudgeModelOptions(num_samples=len(case["ratings"])),
        rubrics=[
            Rubric(rubric_id=str(n), rubric_content=RubricContent(text_property=f"rubric {n}"))
            for n in range(case["rubrics"])
        ],
    )
    metric = EvalMetric(metric_name="rubric_based_final_response_quality_v1", criterion=criterion)
    return score(
        RubricBasedFinalResponseQualityV1Evaluator(metric),
        [rated(rating) for rating in case["ratings"]],
        1,
    )


def score(evaluator: Any, said: list[str | None], invocations: int) -> float:
    """The overall score when the model says this."""
    evaluator._judge_model = Scripted(model="scripted", said=list(said))
    found = asyncio.run(
        evaluator.evaluate_invocations([INVOCATION] * invocations, [INVOCATION] * invocations)
    ).overall_score
    return -1.0 if found is None else found


def labelled(label: str) -> str | None:
    """An answer with a label."""
    if label == "failed":
        return None
    return (
        "I cannot tell"
        if label == "junk"
        else f'{{"reasoning": "", "is_the_agent_response_valid": "{label}"}}'
    )


def rated(rating: Any) -> str | None:
    """An answer with a verdict on each rubric."""
    if isinstance(rating, str):
        return labelled(rating)
    blocks = [
        f"ID: {n}\nProperty: rubric {n}\nRationale: so\nVerdict: {VERDICTS[verdict]}"
        for n, verdict in enumerate(rating)
    ]
    return "\n\n".join(blocks)


if __name__ == "__main__":
    logging.disable()
    answer(("google-adk",), results)

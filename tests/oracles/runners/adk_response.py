"""Google ADK: the final response by ROUGE-1."""

from __future__ import annotations

from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import EvalMetric
from google.adk.evaluation.final_response_match_v1 import RougeEvaluator
from google.genai.types import Content, Part

from .lines import Case, Results, answer

NOTHING_ASKED = Content(parts=[])
EVALUATOR = RougeEvaluator(EvalMetric(metric_name="response_match_score", threshold=0.8))


def results(case: Case) -> Results:
    """The F-measure."""
    actual, expected = invocation(case["response"]), invocation(case["reference"])
    return {
        "response_match_score": EVALUATOR.evaluate_invocations([actual], [expected]).overall_score
    }


def invocation(text: str) -> Invocation:
    """ADK's form of a response."""
    return Invocation(user_content=NOTHING_ASKED, final_response=Content(parts=[Part(text=text)]))


if __name__ == "__main__":
    answer(("google-adk", "rouge-score"), results)

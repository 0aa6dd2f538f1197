"""DeepEval: the metrics that ask no model. Its telemetry and its folder are switched off."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout

from .lines import Case, Results, answer

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_FILE_SYSTEM": "READ_ONLY"}

with redirect_stdout(sys.stderr):  # it says that it writes no files
    from deepeval.metrics import (
        AgentLoopDetectionMetric,
        PatternMatchMetric,
        ToolPermissionMetric,
    )
    from deepeval.test_case import LLMTestCase, ToolCall


def results(case: Case) -> Results:
    """Permitted calls, repeated calls, and the match of the response."""
    called = [ToolCall(name=name) for name, _ in case["actual"]]
    spans = [{"name": name, "input": arguments} for name, arguments in case["actual"]]
    made = LLMTestCase(input="x", actual_output=case["response"] or "-", tools_called=called)
    permission = ToolPermissionMetric(allowed_tools=case["allowed"])
    permission.measure(made, _show_indicator=False)
    denial = ToolPermissionMetric(denied_tools=case["allowed"])
    denial.measure(made, _show_indicator=False)
    pattern = PatternMatchMetric(case["pattern"], ignore_case=case["ignore_case"])
    pattern.measure(made, _show_indicator=False)
    repetition, _ = AgentLoopDetectionMetric()._score_tool_repetition(spans)
    return {
        "allowed": permission.score,
        "denied": float(denial.score == 1),
        "pattern": pattern.score,
        "repetition": repetition,
    }


if __name__ == "__main__":
    answer(("deepeval",), results)

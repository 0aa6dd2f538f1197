"""Every evaluation that the pipeline or an offline command returns has its failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    Evaluator,
    Result,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evidence.failure import Failure
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations.scenario import DEFAULT_KEYS
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.replay import replay_files
from pathgauge.collector.offline.tables.predictions import Predictions
from pathgauge.collector.offline.tables.scoring import score_table
from pathgauge.collector.offline.trace_files import TraceFiles
from pathgauge.collector.testing.scoring import score_invocations
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Invocation, Reference, Score, ToolCall
from support.dialects import INSTALLED
from support.judged import JUDGED, run_of, tool_of

CALLS = Criterion("calls", ToolTrajectoryF1(ordered=False), 1.0)
EVALUATOR = Evaluator((CALLS, JUDGED))
REFERENCES = ReferenceSet([Reference("refund", (reference_turn(*expected_calls("look_up pay")),))])
MISSING = Failure("missing_call", "pay missing")
WRONG = Failure("wrong_answer", "opinion failed")
RUN = Invocation(
    "1" * 32, "2" * 16, "genai", scenario_id="refund", tool_calls=(ToolCall("look_up"),)
)
RIGHT = replace(RUN, span_id="3" * 16, tool_calls=(*RUN.tool_calls, ToolCall("pay")))
SPANS = [
    tool_of("agent"),
    run_of("agent", attributes={DEFAULT_KEYS[0]: "refund"}),
    tool_of("right"),
    tool_of("right", "pay"),
    run_of("right", attributes={DEFAULT_KEYS[0]: "refund"}),
]


def judge(pending: PendingJudgment) -> Evaluation:
    """A judge that fails everything."""
    invocation = pending.invocation()
    results = (Result(JUDGED, Score(0.0), "failed"),)
    return Evaluation(invocation, REFERENCES.match(invocation), results, "root_ended")


def judge_all(waiting: Any, references: ReferenceSet) -> Any:
    return [(pending, judge(pending)) for pending in waiting]


def test_the_failure_of_an_evaluation_and_that_of_its_judges_are_two() -> None:
    pipeline = Pipeline(
        INSTALLED, EVALUATOR, REFERENCES, InternalTelemetry(), judging=lambda *_: "later"
    )
    events = pipeline.feed(SPANS, (), 0.0) + pipeline.drain(0.0)
    found = {one.invocation.agent: one.failure for one in events if isinstance(one, Evaluation)}
    assert found == {"agent": MISSING, "right": None}
    for pending in pipeline.changes().judgments_begun:
        [judged] = pipeline.judged(pending, judge(pending))
        assert isinstance(judged, Judged)
        assert judged.evaluation.failure == WRONG


def test_offline_the_results_of_judges_count_for_the_same_failure() -> None:
    replayed = replay_files(
        TraceFiles(spans=SPANS), Path("-"), EVALUATOR, REFERENCES, DEFAULT_KEYS, judge_all=judge_all
    )
    found = {one.invocation.agent: one.failure for one in replayed.evaluations}
    assert found == {"agent": MISSING, "right": WRONG}


def test_rows_of_tables_have_failures() -> None:
    table = Predictions("table.csv", [RUN, RIGHT], {})
    for asked, expected in ((None, [MISSING, None]), (judge_all, [MISSING, WRONG])):
        evaluations, _ = score_table(table, EVALUATOR, REFERENCES, asked)
        assert [one.failure for one in evaluations] == expected


def test_invocations_of_tests_have_failures() -> None:
    for asked, expected in ((None, [MISSING, None]), (judge_all, [MISSING, WRONG])):
        replayed = score_invocations([RUN, RIGHT], EVALUATOR, REFERENCES, asked)
        assert [one.failure for one in replayed.evaluations] == expected

"""An empty answer, no tool calls, and content that is switched off are three different outcomes in
every instrumentation, and none of them is silent.

The captures `no-answer`, `no-tools` and `no-content` are runs of the real frameworks with the same
scripted model as in `examples/`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.scorers.cost.budgets import MaxTurns
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import MatchType, ToolTrajectoryAvgScore
from pathgauge.scorers.types import ExpectedCall, Invocation, ReferenceTurn
from support.altered import without_text
from support.arrival import final_invocations
from support.dialects import INSTALLED
from support.repository import CAPTURES

ANSWER = "I have refunded 59.90 euros to your card."
NAMES = ("lookup_order", "issue_refund")
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"order_id": "A-1042"},
    {"order_id": "A-1042", "amount": 59.9},
)
BY_NAME = ReferenceTurn(None, tuple(ExpectedCall(name) for name in NAMES), ANSWER)
BY_ARGUMENTS = ReferenceTurn(
    None,
    tuple(ExpectedCall(*call) for call in zip(NAMES, ARGUMENTS, strict=True)),
    ANSWER,
)

AFTER_THE_ANSWER = {"crewai-openinference": "asks again for a non-empty answer, and then fails"}
"""Frameworks that call the tools again after an empty answer."""
ANSWERED_BY_A_TOOL = {"smolagents-openinference"}
"""Their answer is a call of `final_answer`."""


def cases(name: str) -> list[str]:
    return sorted(path.parent.name for path in CAPTURES.glob(f"*/{name}"))


def final(*folders: Path) -> list[Invocation]:
    items: list[Span | LogRecord] = []
    for files in map(read_path, folders):
        items += [*files.spans, *files.logs]
    return final_invocations(items, len(items), 0)


def only(folder: Path) -> Invocation:
    [found] = final(folder)
    return found


def outcome(scorer: Any, actual: Invocation, expected: ReferenceTurn = BY_NAME) -> Any:
    score = scorer.score(actual, expected)
    return score.reason or score.value


def trajectory(framework: str, actual: Invocation, expected: ReferenceTurn = BY_NAME) -> Any:
    mode = MatchType.IN_ORDER if framework in ANSWERED_BY_A_TOOL else MatchType.EXACT
    return outcome(ToolTrajectoryAvgScore(mode), actual, expected)


def test_most_instrumentations_have_all_captures() -> None:
    assert len(cases("no-answer")) == 24
    assert len(cases("no-tools")) == 23
    assert len(cases("no-content")) == 17


@pytest.mark.parametrize("framework", cases("no-answer"))
def test_an_empty_answer_scores_0_and_its_tools_count(framework: str) -> None:
    found = only(CAPTURES / framework / "no-answer")
    assert (found.final_response, outcome(ResponseMatchScore(), found)) == ("", 0.0)
    assert "content_missing" not in found.flags
    right = 0.0 if framework in AFTER_THE_ANSWER else 1.0
    assert trajectory(framework, found, BY_ARGUMENTS) == right


def test_an_answer_without_parts_is_empty_too() -> None:
    assert only(CAPTURES / "google-adk-native-schema1" / "no-parts").final_response == ""


@pytest.mark.parametrize("framework", cases("no-tools"))
def test_an_agent_that_calls_no_tools_scores_0_and_its_answer_counts(framework: str) -> None:
    """By hand, the spans of model calls do not tell that they asked for no tools. What the agent
    did before tells it.
    """
    folders = [CAPTURES / framework / name for name in ("no-tools", "no-answer")]
    found = next(one for one in final(*folders) if one.final_response)
    assert outcome(ResponseMatchScore(), found) == 1.0
    assert trajectory(framework, found) == 0.0
    alone = trajectory(framework, only(CAPTURES / framework / "no-tools"))
    assert alone == ("tools_not_recorded" if framework == "by-hand" else 0.0)


@pytest.mark.parametrize("framework", cases("no-content"))
def test_content_that_is_switched_off_is_not_recorded(framework: str) -> None:
    folder = CAPTURES / framework
    others = [folder / name for name in ("no-answer", "no-tools") if (folder / name).is_dir()]
    trace = only(folder / "no-content").trace_id
    for found in final(folder / "no-content", *others):
        if found.trace_id == trace:
            # The tasks of a crew are recorded in any case.
            asked = found.user_input if framework == "crewai-openinference" else None
            assert (found.user_input, found.final_response) == (asked, None)
            assert "content_missing" in found.flags
            assert outcome(ResponseMatchScore(), found) == "response_not_recorded"
            assert trajectory(framework, found) == 1.0
            assert trajectory(framework, found, BY_ARGUMENTS) == "args_not_recorded"


def answered() -> list[str]:
    """Of each instrumentation and version, the first capture with an answer."""
    paths = sorted(CAPTURES.glob("*/*/invocations.json"), reverse=True)
    first = {
        path.parent.parent: path.parent
        for path in paths
        if any(one["final_response"] for one in json.loads(path.read_text()))
    }
    return sorted(path.relative_to(CAPTURES).as_posix() for path in first.values())


ANSWERED = answered()


@pytest.mark.parametrize("case", ANSWERED)
def test_an_answer_that_is_emptied_in_any_capture_scores_0(case: str) -> None:
    files = read_path(CAPTURES / case)
    answers = {
        (one["trace_id"], one["span_id"]): one["final_response"]
        for one in json.loads((CAPTURES / case / "invocations.json").read_text())
        if one["final_response"]
    }
    for key, answer in answers.items():
        spans, logs = without_text(files.spans, answer), without_text(files.logs, answer)
        items: list[Span | LogRecord] = [*spans, *logs]
        [found] = [
            one
            for one in final_invocations(items, len(items), 0)
            if (one.trace_id, one.span_id) == key
        ]
        assert found.final_response == ""


@pytest.mark.parametrize("case", ANSWERED)
def test_the_turns_of_every_capture_are_counted(case: str) -> None:
    files = read_path(CAPTURES / case)
    pipeline = Pipeline(
        INSTALLED,
        Evaluator((Criterion("max_turns", MaxTurns()),)),
        ReferenceSet(),
        InternalTelemetry(),
    )
    pipeline.feed(files.spans, files.logs, 0.0)
    for event in pipeline.read_open(0.0):
        assert isinstance(event, Evaluation)
        [result] = event.results
        doubtful = {"missing_root", "llm_detail_unreliable", "lost_tool_calls"}
        unknown = event.invocation.flags & doubtful
        if event.invocation.model_calls and not unknown:
            assert result.score.value is not None

"""The contract of every sink. A new sink needs one line in `SINKS`, or a test fails here."""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import pathgauge.collector.sinks
from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import (
    VERDICTS,
    Criterion,
    Evaluation,
    Evaluator,
    Result,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import UNMATCHED, Match, ReferenceSet
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.sinks.otlp_events.sink import OtlpEvents
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score, ToolCall
from support.backend import RecordingExporter
from support.repository import DOCS

CRITERION = Criterion("failure", Failure(), 0.5)
REFERENCE = Reference("s1", (ReferenceTurn(),))

SINKS: dict[type, Callable[[], Sink]] = {
    PrometheusSink: lambda: PrometheusSink(
        Evaluator((CRITERION,)), ReferenceSet([REFERENCE]), InternalTelemetry()
    ),
    OtlpEvents: lambda: OtlpEvents(RecordingExporter(), InternalTelemetry(), content=True),
    UnknownScenarios: lambda: UnknownScenarios(ReferenceSet([REFERENCE])),
}


def documented_sink() -> Sink:
    """The example of docs/adding-a-sink.md."""
    page = (DOCS / "adding-a-sink.md").read_text()
    names: dict[str, Any] = {"__name__": __name__}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    sink: Sink = names["JsonLines"](io.StringIO())
    return sink


BARE = Invocation("1" * 32, "2" * 16, "genai")
FULL = Invocation(
    trace_id="3" * 32,
    span_id="4" * 16,
    dialect="adk",
    tenant="acme",
    agent='plan\n"ner"\\\x00',
    agent_version="v" * 10_000,
    scenario_id="s1",
    conversation_id="c",
    turn=0,
    user_input="\ud800",
    tool_calls=(ToolCall("search", {"q": None}),),
    final_response="",
    error=True,
    error_type="Timeout",
    model="m",
    input_tokens=2**63,
    output_tokens=0,
    start_ns=2**63,
    end_ns=1,
    flags=frozenset({"clock_skew"}),
)
MATCHED = Match(REFERENCE, REFERENCE.turns[0], 0)
RESULTS = tuple(
    Result(CRITERION, Score(1.0 if verdict in ("passed", "failed") else None), verdict)
    for verdict in VERDICTS
)

EVALUATIONS: dict[str, Evaluation] = {
    "nothing recorded": Evaluation(BARE, Match(unmatched="no_scenario_id"), (), "idle"),
    "everything recorded": Evaluation(FULL, MATCHED, RESULTS, "root_ended"),
    "shut down": Evaluation(FULL, MATCHED, RESULTS[:1], "shutdown"),
    **{
        reason: Evaluation(FULL, Match(unmatched=reason), RESULTS, "too_old")
        for reason in UNMATCHED
    },
}


@pytest.fixture(
    name="sink",
    params=[*SINKS.values(), documented_sink],
    ids=[*(sink.__name__ for sink in SINKS), "documented"],
)
def _sink(request: pytest.FixtureRequest) -> Sink:
    sink = request.param()
    assert isinstance(sink, Sink)
    return sink


def test_every_sink_of_the_package_is_tested_here() -> None:
    names = [
        module.name
        for module in pkgutil.walk_packages(
            pathgauge.collector.sinks.__path__, "pathgauge.collector.sinks."
        )
    ]
    classes = [
        found
        for name in names
        for _, found in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if found.__module__ == name
    ]
    assert {found for found in classes if issubclass(found, Sink)} == set(SINKS)


@pytest.mark.parametrize("evaluation", EVALUATIONS.values(), ids=EVALUATIONS)
def test_it_accepts_every_evaluation_and_changes_none(sink: Sink, evaluation: Evaluation) -> None:
    before = copy.deepcopy(evaluation)
    sink.publish(evaluation, 1_800_000_000.0)
    assert evaluation == before


def test_it_accepts_revisions_repetitions_and_clocks_that_run_backwards(sink: Sink) -> None:
    first = EVALUATIONS["everything recorded"]
    for revision, now in [(0, 100.0), (0, 100.0), (1, 101.0), (3, 0.0), (2, -5.0)]:
        sink.publish(replace(first, revision=revision), now)


def test_it_accepts_a_revision_of_an_unknown_evaluation(sink: Sink) -> None:
    sink.publish(replace(EVALUATIONS["everything recorded"], revision=7), 100.0)


def test_it_accepts_withdrawals_of_known_and_unknown_keys(sink: Sink) -> None:
    published = EVALUATIONS["everything recorded"]
    sink.publish(published, 100.0)
    for key in (published.key, published.key, ("", "never", "seen")):
        sink.withdraw(key)


def test_it_accepts_finished_conversations(sink: Sink) -> None:
    for agent, scores in [(None, ()), ("planner", (ConversationScore(CRITERION, 0.5),))]:
        sink.publish_conversation(
            ConversationResult(
                "", "c", REFERENCE, agent, None, scores, matched=1, missing=0, unexpected=2
            ),
            100.0,
        )


def test_it_can_be_closed_twice_and_without_a_publish(sink: Sink) -> None:
    sink.close()
    sink.close()

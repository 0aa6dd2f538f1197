"""The healthy scripts of the demo meet every threshold of its references; the regressed do not."""

from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pathgauge.collector import config
from pathgauge.collector.cli.demo import session
from pathgauge.collector.cli.demo.agents import Agent
from pathgauge.collector.cli.demo.scripts import CONCIERGE, SUPPORT, ExampleAgent, Release, Script
from pathgauge.collector.client import ScenarioSpanProcessor, scenario
from pathgauge.collector.config import active
from pathgauge.collector.config.reference_files import load
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evidence.failures import Failure, failure_of
from pathgauge.collector.core.otlp import decode_traces
from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore, ToolTrajectoryF1
from pathgauge.scorers.types import Invocation
from support.dialects import read

FOLDER = Path(session.__file__).parent
REFERENCES = ReferenceSet(entry.reference for entry in load(["references/*.yaml"], FOLDER).entries)
CRITERIA = (
    Criterion("tool_trajectory_avg_score", ToolTrajectoryAvgScore(), 1.0),
    Criterion("tool_trajectory_f1", ToolTrajectoryF1(), 0.9),
    Criterion("response_match_score", ResponseMatchScore(), 0.7),
)

HEALTHY = [
    (agent, release, script)
    for agent in (CONCIERGE, SUPPORT)
    for release in (agent.release, agent.repaired)
    if release
    for script in release.scripts
]


def invocation(agent: ExampleAgent, release: Release, script: Script) -> Invocation:
    """What the collector reads from the spans of one turn."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    for processor in (ScenarioSpanProcessor(), SimpleSpanProcessor(exporter)):
        provider.add_span_processor(processor)
    example = Agent(
        provider.get_tracer("test"), agent.name, release.version, agent.model, lambda _: None
    )
    with scenario(script.scenario_id):
        example.handle(script, "conversation-1")
    spans = decode_traces(encode_spans(exporter.get_finished_spans()).SerializeToString()).records
    (only,) = read(Trace("", spans[0].trace_id, spans))
    return only


def verdicts(agent: ExampleAgent, release: Release, script: Script) -> list[str]:
    actual = invocation(agent, release, script)
    return [
        result.verdict
        for result in Evaluator(CRITERIA).evaluate(actual, REFERENCES.match(actual)).results
    ]


@pytest.mark.parametrize(
    ("agent", "release", "script"), HEALTHY, ids=lambda value: getattr(value, "scenario_id", "")
)
def test_a_healthy_release_meets_every_threshold(
    agent: ExampleAgent, release: Release, script: Script
) -> None:
    assert verdicts(agent, release, script) == ["passed", "passed", "passed"]


@pytest.mark.parametrize(
    "script",
    SUPPORT.regressed.scripts if SUPPORT.regressed else (),
    ids=lambda script: script.scenario_id,
)
def test_the_regressed_release_misses_every_threshold(script: Script) -> None:
    assert SUPPORT.regressed is not None
    assert verdicts(SUPPORT, SUPPORT.regressed, script) == ["failed", "failed", "failed"]


def test_the_regressed_release_skips_a_tool_and_then_confuses_an_argument() -> None:
    assert SUPPORT.regressed is not None
    found = {}
    for script in SUPPORT.regressed.scripts:
        actual = invocation(SUPPORT, SUPPORT.regressed, script)
        evaluation = Evaluator(CRITERIA).evaluate(actual, REFERENCES.match(actual))
        found[script.scenario_id] = failure_of(evaluation)
    assert found == {
        "refund-order": Failure(
            "missing_call", "check_refund_policy missing; issue_refund.amount differs"
        ),
        "track-parcel": Failure(
            "missing_call", "lookup_order missing; track_parcel.tracking differs"
        ),
    }


def test_every_reference_has_a_script_with_the_same_input() -> None:
    scripts = {
        script.scenario_id: script.user_input
        for agent in (CONCIERGE, SUPPORT)
        for script in agent.release.scripts
    }
    assert {
        reference.scenario_id: reference.turns[0].user_input for reference in REFERENCES
    } == scripts


def test_the_collector_reads_agent_version_and_conversation() -> None:
    actual = invocation(SUPPORT, SUPPORT.release, SUPPORT.release.scripts[0])
    assert (actual.agent, actual.agent_version, actual.conversation_id, actual.flags) == (
        "support",
        "2.4.0",
        "conversation-1",
        frozenset(),
    )


def test_the_packaged_configuration_has_these_criteria_and_references() -> None:
    in_force = active.resolve(config.load(FOLDER / "pathgauge.yaml"))
    assert {criterion.name: criterion.threshold for criterion in in_force.evaluator.criteria} == {
        **{criterion.name: criterion.threshold for criterion in CRITERIA},
        "failure": None,
        "latency": None,
    }
    assert list(in_force.references) == list(REFERENCES)
    assert in_force.warnings == ()

"""Incidents in which scores would vanish: each raises its own alert about its agent within an hour,
and no other. Spans go through the real pipeline, sink and rules, in virtual time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.otlp import decode_traces
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.service.canary import TENANT as CANARY, export_request
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.cost.budgets import MaxTurns
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import Reference
from support.by_hand import invocation
from support.promtool import needs_promtool
from support.simulated import Alert, SimulatedCollector

pytestmark = [needs_promtool, pytest.mark.slow]

CRITERIA = (
    Criterion("tool_trajectory_avg_score", ToolTrajectoryAvgScore(), 0.9),
    Criterion("response_match_score", ResponseMatchScore(), 0.9),
    Criterion("max_turns", MaxTurns(), 1.0),
    Criterion("failure", Failure()),
)
REFERENCES = ReferenceSet(
    [Reference("refund", (reference_turn(*expected_calls("look"), response="It is done."),))]
)

CALM, HOUR = 40, 60
A_MINUTE = 4

Behaviour = Callable[[str, Random], list[Span]]
"""The spans of one invocation, by the name of its trace."""


def usual(trace: str, random: Random) -> list[Span]:
    return invocation("look", trace=trace, scenario="refund", answer="It is done.")


def some_answers_are_empty(trace: str, random: Random) -> list[Span]:
    answer = "" if random.random() < 0.3 else "It is done."
    return invocation("look", trace=trace, scenario="refund", answer=answer)


def content_is_switched_off(trace: str, random: Random) -> list[Span]:
    return invocation("look", trace=trace, scenario="refund", answer=None, arguments=None)


def content_is_sometimes_switched_off(trace: str, random: Random) -> list[Span]:
    behaviour = content_is_switched_off if random.random() < 0.3 else usual
    return behaviour(trace, random)


def tools_are_gone(trace: str, random: Random) -> list[Span]:
    return invocation(trace=trace, scenario="refund", answer="It is done.")


def canaries() -> Iterator[list[Span]]:
    for _ in range(A_MINUTE * 4):
        sent = decode_traces(export_request(secrets.token_bytes(16))).records
        yield [Span(one.raw, one.resource, one.scope, CANARY) for one in sent]


def simulated(incident: Behaviour) -> SimulatedCollector:
    """Two agents and many canaries. After a calm time, one agent has the incident for an hour."""
    collector, random = SimulatedCollector(REFERENCES, *CRITERIA, drift=Drift()), Random(2026)
    for minute in range(CALM + HOUR):
        behaviour = usual if minute < CALM else incident
        ours = [behaviour(f"{minute} {number}", random) for number in range(A_MINUTE)]
        others = [
            invocation(
                "look",
                trace=f"other {minute} {number}",
                name="other_agent",
                scenario="refund",
                answer="It is done.",
            )
            for number in range(A_MINUTE)
        ]
        collector.minute([*ours, *others, *canaries()])
    return collector


WORSE, MISSING = "PathgaugeScoreDrift", "PathgaugeContentMissing"
RESPONSE, TRAJECTORY = "response_match_score", "tool_trajectory_avg_score"


@pytest.mark.parametrize(
    ("incident", "alerts"),
    [
        (usual, {}),
        (some_answers_are_empty, {WORSE: [RESPONSE]}),
        (content_is_switched_off, {MISSING: [RESPONSE, TRAJECTORY]}),
        (content_is_sometimes_switched_off, {MISSING: [RESPONSE, TRAJECTORY]}),
        (tools_are_gone, {WORSE: [TRAJECTORY]}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_incident_raises_the_alert_about_its_agent_and_metric_and_no_other(
    incident: Behaviour, alerts: Mapping[str, list[str]], tmp_path: Path
) -> None:
    expected: set[Alert] = {
        (alert, "refund_agent", metric) for alert, metrics in alerts.items() for metric in metrics
    }
    assert simulated(incident).alerts(tmp_path, CALM + HOUR) == expected

"""Lost spans, and content that is switched off, are alerts of their own within an hour, and
no drift of scores. Spans go through the real pipeline, sink and rules.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import Reference
from support.by_hand import INPUT, OUTPUT, invocation, text
from support.promtool import needs_promtool
from support.simulated import SimulatedCollector

pytestmark = [needs_promtool, pytest.mark.slow]

CRITERIA = (
    Criterion("trajectory", ToolTrajectoryAvgScore(), 0.9),
    Criterion("response", ResponseMatchScore(), 0.9),
)
TOOLS = ("look", "check", "refund")
REFERENCES = ReferenceSet(
    [
        Reference(
            "refund", (reference_turn(*expected_calls(" ".join(TOOLS)), response="It is done."),)
        )
    ]
)
CALM, HOUR, A_MINUTE = 60, 60, 4
SEEDS = 3 if "NOISE" in os.environ else 1

Behaviour = Callable[[str, Random], list[Span]]


def chats() -> list[dict[str, Any]]:
    """A model call before each call of a tool, and one for the answer. Each prompt holds all calls
    so far, and their results.
    """
    prompt: list[dict[str, Any]] = json.loads(text("user", "Refund it."))
    found = []
    for number, tool in enumerate(TOOLS):
        call = {"type": "tool_call", "name": tool, "arguments": {}, "id": f"c{number}"}
        said = {"role": "assistant", "parts": [call]}
        found.append({INPUT: json.dumps(prompt), OUTPUT: json.dumps([said])})
        result = {"type": "tool_call_response", "id": f"c{number}", "response": "ok"}
        prompt += [said, {"role": "tool", "parts": [result]}]
    return [*found, {INPUT: json.dumps(prompt), OUTPUT: text("assistant", "It is done.")}]


def usual(trace: str, random: Random) -> list[Span]:
    return invocation(*TOOLS, trace=trace, scenario="refund", answer="It is done.", chats=chats())


def half_of_the_spans_are_lost(trace: str, random: Random) -> list[Span]:
    return [span for span in usual(trace, random) if random.random() < 0.5]


def half_of_the_spans_of_nested_traces_are_lost(trace: str, random: Random) -> list[Span]:
    nested = invocation(
        *TOOLS, trace=trace, scenario="refund", answer="It is done.", chats=chats(), steps=True
    )
    return [span for span in nested if random.random() < 0.5]


def a_step_is_lost_where_models_have_no_messages(trace: str, random: Random) -> list[Span]:
    nested = invocation(*TOOLS, trace=trace, scenario="refund", answer="It is done.", steps=True)
    return [span for span in nested if span.name != "step" or random.random() < 0.7]


def content_is_sometimes_switched_off(trace: str, random: Random) -> list[Span]:
    if random.random() < 0.3:
        return invocation(*TOOLS, trace=trace, scenario="refund", answer=None, arguments=None)
    return usual(trace, random)


@pytest.mark.parametrize(
    ("incident", "alert"),
    [
        (half_of_the_spans_are_lost, "PathgaugeTelemetryLost"),
        (half_of_the_spans_of_nested_traces_are_lost, "PathgaugeTelemetryLost"),
        (a_step_is_lost_where_models_have_no_messages, "PathgaugeTelemetryLost"),
        (content_is_sometimes_switched_off, "PathgaugeContentMissing"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_it_is_an_alert_within_an_hour_and_no_page_about_scores(
    incident: Behaviour, alert: str, seed: int, tmp_path: Path
) -> None:
    collector = SimulatedCollector(REFERENCES, *CRITERIA, drift=Drift())
    random = Random(seed)
    for minute in range(CALM + HOUR):
        behaviour = usual if minute < CALM else incident
        collector.minute(behaviour(f"{minute} {number}", random) for number in range(A_MINUTE))
    fired = {name for name, *_ in collector.alerts(tmp_path, CALM + HOUR)}
    assert alert in fired
    assert not {name for name in fired if "Drift" in name}

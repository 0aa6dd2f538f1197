"""Criteria over many invocations: their keys, and every mistake in them."""

from __future__ import annotations

import re

import pytest

from config.criteria.test_build import build, message
from pathgauge.collector.core.evaluations.aggregation import Aggregation


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{over: agent, threshold: 0.15}", Aggregation("agent")),
        ("{over: suite, aggregate: mean}", Aggregation("suite")),
        ("{over: agent, aggregate: share}", Aggregation("agent", "share")),
        ("{over: agent, aggregate: share, each: 0.8}", Aggregation("agent", "share", 0.8)),
        ("{over: scenario, aggregate: pass^k, k: 4}", Aggregation("scenario", "pass^k", None, 4)),
        ("{over: suite, aggregate: pass@k, k: 1}", Aggregation("suite", "pass@k", None, 1)),
        ("{over: invocation, threshold: 1}", None),
        ("1.0", None),
        ("", None),
    ],
)
def test_a_criterion_can_judge_many_scores(written: str, expected: Aggregation | None) -> None:
    (criterion,) = build(f"response_match_score: {written}")
    assert criterion.aggregation == expected


def test_a_criterion_over_an_agent_gives_no_verdict_on_an_invocation() -> None:
    (criterion,) = build("response_match_score: {over: agent, threshold: 0.9}")
    assert [criterion.verdict(value) for value in (0.0, 1.0, None)] == [
        "informational",
        "informational",
        "not_evaluated",
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "{over: agnet}",
            "over: found 'agnet', expected invocation, scenario, agent, suite;"
            " did you mean 'agent'?",
        ),
        ("{over: 1}", "over: found 1, expected invocation, scenario, agent, suite"),
        (
            "{over: agent, aggregate: median}",
            "aggregate: found 'median', expected mean, share, pass@k, pass^k; did you mean 'mean'?",
        ),
        (
            "{aggregate: share, threshold: 1}",
            "aggregate: found 'aggregate' without 'over', expected over: scenario, agent, suite",
        ),
        ("{each: 1}", "each: found 'each' without 'over', expected over: scenario, agent, suite"),
        ("{k: 1}", "k: found 'k' without 'over', expected over: scenario, agent, suite"),
        (
            "{over: agent, each: 0.5}",
            "each: found 'each' with a mean, expected aggregate: share, pass@k or pass^k",
        ),
        (
            "{over: agent, aggregate: share, each: 1.5}",
            "each: found 1.5, expected a number from 0 to 1",
        ),
        (
            "{over: agent, aggregate: pass^k}",
            "aggregate: found no 'k' with aggregate: pass^k, expected a number of invocations",
        ),
        (
            "{over: agent, aggregate: share, k: 2}",
            "k: found 'k' with aggregate: share, expected none",
        ),
        (
            "{over: agent, aggregate: pass@k, k: 0}",
            "k: found 0, expected a number of invocations from 1 to 100",
        ),
        (
            "{over: agent, aggregate: pass@k, k: true}",
            "k: found true, expected a number of invocations from 1 to 100",
        ),
        (
            "{over: agent, threshold: 0.9, objective: 0.9}",
            "objective: found an objective and over: agent, expected only one of the two",
        ),
        (
            "{over: agent, aggregate: share, each: 1, threshold: 1.1}",
            "threshold: found 1.1, expected a number from 0 to 1",
        ),
    ],
)
def test_a_mistake_is_reported_at_its_key(written: str, expected: str) -> None:
    text = message(f"response_match_score: {written}")
    assert re.sub(r"^c\.yaml:1:\d+: response_match_score\.", "", text) == expected


def test_a_share_of_a_metric_without_a_best_score_needs_the_score_of_each() -> None:
    for measure in ("pass^k, k: 2", "share"):
        assert message(f"latency: {{over: agent, aggregate: {measure}}}") == (
            "c.yaml:1:35: latency.aggregate: found no 'each', expected the score with which one"
            f" invocation passes ({measure[:6].rstrip(',')})"
        )


def test_the_threshold_of_a_share_of_seconds_is_a_share() -> None:
    (criterion,) = build("latency: {over: agent, aggregate: share, each: 30, threshold: 0.95}")
    assert criterion.aggregation == Aggregation("agent", "share", 30)
    assert "threshold: found 30, expected a number from 0 to 1" in message(
        "latency: {over: agent, aggregate: share, each: 30, threshold: 30}"
    )


def test_a_criterion_made_of_one_over_many_invocations_is_refused() -> None:
    text = message(
        "right: {scorer: tool_trajectory_avg_score, over: agent, threshold: 0.9}\n"
        "all: {scorer: composite, of: [right], threshold: 1}"
    )
    assert text.endswith(
        "all.of[0]: found 'right' with over: agent, expected a criterion over single invocations"
    )

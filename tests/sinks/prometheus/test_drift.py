"""Drift of scores, as scrapes show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import structlog

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.drift.gauges import ROLLED_BACK_S, SILENT_S
from pathgauge.collector.sinks.prometheus.drift.recording import MAX_ROWS
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score, TurnRubric
from support.durable_harness import DurableHarness
from support.sink_harness import ANSWER, NOW, Answer, SinkHarness, Trajectory

STREAM = ("planner", "refund", "answer", "threshold")
EVERYTHING = (
    "evidence_days",
    "adjusted_evidence_days",
    "baseline",
    "mean",
    "mean_before",
    "samples",
)
MINUTE = 60.0
HOUR = 60 * MINUTE
UNLIMITED = Criterion("answer", Answer())
LEARNED = (*STREAM[:3], "learned")


@dataclass(frozen=True, slots=True)
class Calls(Answer):
    """Misses the first of two calls in its answer, unless the answer is perfect."""

    name: ClassVar[str] = "calls"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        value = float(actual.final_response or 0)
        missing = [] if value == 1 else [[0, "search"]]
        return Score(
            value, details={"matched": [[0, 1, "book"]], "missing": missing, "unexpected": []}
        )


def drifting(*criteria: Criterion, **options: Any) -> DurableHarness:
    return DurableHarness(*criteria, **{"drift": Drift(), **options})


def publish_scores(
    harness: SinkHarness, *scores: float, each: float = MINUTE, **fields: Any
) -> None:
    for score in scores:
        harness.now += each
        harness.publish(score, **fields)


def reconfigure(harness: SinkHarness, evaluator: Evaluator) -> None:
    harness.evaluator = evaluator
    harness.sink.configure(evaluator, harness.references, drift=Drift())


def shown(harness: SinkHarness, stream: tuple[str, ...] = STREAM) -> dict[str, float]:
    series = {name: harness.series(f"pathgauge_drift_{name}") for name in EVERYTHING}
    return {name: values[stream] for name, values in series.items() if stream in values}


def test_scores_below_their_threshold_become_evidence() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 50)
    assert shown(harness).keys() == {"evidence_days", "adjusted_evidence_days", "baseline"}
    assert shown(harness)["evidence_days"] < 1
    publish_scores(harness, *[0.0] * 40)
    assert shown(harness)["evidence_days"] > 365
    assert shown(harness) | {"evidence_days": 0, "adjusted_evidence_days": 0} == {
        "evidence_days": 0,
        "adjusted_evidence_days": 0,
        "baseline": 0.5,
        "mean": 0.0,
        "mean_before": 1.0,
        "samples": 40,
    }


def test_the_change_is_dated_and_names_the_version_that_was_new_then() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 500, agent_version="v1")
    publish_scores(harness, *[0.0] * 40, agent_version="v2")
    since = harness.series("pathgauge_drift_since_timestamp_seconds")
    changed = NOW + 501 * MINUTE
    assert since["planner", "refund", "answer", "v2", "threshold"] == changed


def test_the_newest_version_is_compared_with_the_one_before() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0, 0.9] * 50, each=30 * MINUTE, agent_version="v1")
    publish_scores(harness, *[0.6] * 60, each=30 * MINUTE, agent_version="v2")
    newest = shown(harness, (*STREAM[:3], "version"))
    assert newest["evidence_days"] > 365
    assert newest["mean"] == pytest.approx(0.6)
    assert newest["mean_before"] == pytest.approx(0.95)
    assert shown(harness)["evidence_days"] < 1


def test_a_version_that_is_worse_later_was_not_first_seen_about_then() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0, 0.9] * 50, each=30 * MINUTE, agent_version="v1")
    publish_scores(harness, *[0.95] * 20, each=30 * MINUTE, agent_version="v2")
    publish_scores(harness, *[0.0] * 20, each=30 * MINUTE, agent_version="v2")
    since = harness.series("pathgauge_drift_since_timestamp_seconds")
    assert since.keys() >= {("planner", "refund", "answer", "", "version")}


def test_the_newest_version_is_compared_with_the_one_that_is_pinned() -> None:
    pinned = {"planner": "v1", "other": "v2"}
    harness = drifting(drift=Drift(baseline_versions=pinned))
    for version, score in (("v1", 0.9), ("v2", 0.88), ("v3", 0.6)):
        publish_scores(harness, *[score] * 100, each=30 * MINUTE, agent_version=version)
    newest = shown(harness, (*STREAM[:3], "version"))
    assert newest["evidence_days"] > 365
    assert newest["mean_before"] == pytest.approx(0.9)


def test_the_tool_that_explains_the_loss_is_named_while_an_alarm_is_open() -> None:
    harness = drifting(Criterion("calls", Calls(), 0.5))
    publish_scores(harness, *[1.0] * 50)
    assert harness.series("pathgauge_drift_misses") == {}
    publish_scores(harness, *[0.0] * 40)
    assert harness.series("pathgauge_drift_misses") == {
        ("planner", "refund", "calls", "threshold", "missing", "search", ""): 1.0
    }


def test_the_tool_that_a_worse_version_misses_is_named() -> None:
    harness = drifting(Criterion("calls", Calls(), 0.5))
    publish_scores(harness, *[1.0] * 60, each=30 * MINUTE, agent_version="v1")
    publish_scores(harness, *[0.0] * 2, each=30 * MINUTE, agent_version="v1")
    publish_scores(harness, *[1.0] * 38, each=30 * MINUTE, agent_version="v1")
    publish_scores(harness, *[0.0] * 20, each=30 * MINUTE, agent_version="v2")
    streams = {one.drift.against: one.changes for one in harness.sink.shown.drifts()}
    (change,) = streams["version"]
    assert (change.miss.tool, change.rate, change.rate_before) == ("search", 1.0, 0.02)
    assert harness.series("pathgauge_drift_misses") == {
        ("planner", "refund", "calls", against, "missing", "search", ""): 1.0
        for against in ("threshold", "version")
    }


def test_an_alarm_ends_with_evidence_for_recovery() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 50, *[0.0] * 40)
    evidence = shown(harness)["evidence_days"]
    publish_scores(harness, *[1.0] * 5)
    assert shown(harness)["evidence_days"] == evidence, "no flapping meanwhile"
    publish_scores(harness, *[1.0] * 50)
    assert shown(harness)["evidence_days"] < 1


def test_revisions_and_withdrawals_change_no_evidence() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 50, *[0.0] * 10)
    before = shown(harness)
    evaluation = harness.publish(0.0)
    counted = shown(harness)
    assert counted != before
    harness.sink.publish(replace(evaluation, revision=1), harness.now)
    harness.sink.withdraw(evaluation.key)
    assert shown(harness) == counted


def test_scores_without_a_scenario_have_no_evidence() -> None:
    harness = drifting()
    publish_scores(harness, *[0.0] * 100, scenario_id=None)
    assert harness.series("pathgauge_drift_evidence_days") == {}


def test_a_restart_continues_exactly() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 50, *[0.0] * 12, agent_version="v1")
    harness.commit()
    after = harness.restarted(drift=Drift())
    assert shown(after) == shown(harness)
    for one in (harness, after):
        publish_scores(one, *[0.0] * 30, agent_version="v1")
    assert shown(after) == shown(harness)


@pytest.mark.slow
def test_many_states_are_stored_by_several_commits() -> None:
    harness = drifting(ANSWER, replace(ANSWER, name="again"))
    for number in range(MAX_ROWS // 2 + 1):
        publish_scores(harness, 1.0, agent=f"agent{number:03}")
    commits = 0
    while harness.sink.needs_commit:
        harness.commit()
        commits += 1
    assert commits == 2
    assert shown(harness.restarted(drift=Drift()), ("agent050", *STREAM[1:]))["baseline"] == 0.5


def test_a_series_is_shown_over_a_weekend_without_scores_and_not_for_longer() -> None:
    harness = drifting()
    publish_scores(harness, 1.0)
    harness.now += SILENT_S
    assert shown(harness) != {}
    harness.now += 1
    assert shown(harness) == {}


def test_a_version_that_was_rolled_back_is_shown_for_a_day() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 60, each=30 * MINUTE, agent_version="v1")
    publish_scores(harness, *[0.5] * 60, each=30 * MINUTE, agent_version="v2")
    publish_scores(harness, 1.0, each=ROLLED_BACK_S, agent_version="v1")
    assert shown(harness, (*STREAM[:3], "version")) != {}
    harness.now += 1
    assert shown(harness, (*STREAM[:3], "version")) == {}
    assert shown(harness) != {}


def test_an_alarm_about_a_version_outlasts_a_weekend_without_any_scores() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 60, each=30 * MINUTE, agent_version="v1")
    publish_scores(harness, *[0.5] * 60, each=30 * MINUTE, agent_version="v2")
    harness.now += SILENT_S
    assert shown(harness, (*STREAM[:3], "version"))["evidence_days"] > 365
    harness.now += 1
    assert shown(harness, (*STREAM[:3], "version")) == {}


def test_a_removed_criterion_is_forgotten() -> None:
    harness = drifting()
    publish_scores(harness, *[1.0] * 50, *[0.0] * 40)
    other = SinkHarness(replace(ANSWER, name="other"))
    harness.sink.configure(other.evaluator, other.references, drift=Drift())
    assert shown(harness) == {}
    harness.sink.configure(harness.evaluator, harness.references, drift=Drift())
    assert shown(harness) == {}


def frozen_alarm(*criteria: Criterion) -> DurableHarness:
    """A baseline was learned, and then the scores stay at another level for a month."""
    harness = drifting(*criteria)
    publish_scores(harness, *[1.0] * 200, each=HOUR)
    publish_scores(harness, *[0.7, 0.8] * 360, each=HOUR)
    assert shown(harness, LEARNED)["evidence_days"] > 365
    assert shown(harness, LEARNED)["baseline"] > 0.9
    return harness


def test_a_threshold_accepts_a_new_level() -> None:
    harness = frozen_alarm(UNLIMITED)
    reconfigure(harness, Evaluator((replace(UNLIMITED, threshold=0.7),)))
    publish_scores(harness, *[0.7, 0.8] * 360, each=HOUR)
    assert shown(harness, LEARNED) == {}
    assert shown(harness)["baseline"] == pytest.approx(0.7)
    assert shown(harness)["evidence_days"] < 30


@pytest.mark.slow
def test_an_objective_accepts_a_new_level() -> None:
    perfect = replace(UNLIMITED, threshold=1.0)
    harness = frozen_alarm(perfect)
    reconfigure(harness, Evaluator((replace(perfect, objective=0.7),)))
    publish_scores(harness, *[0.7, 0.8] * 360, each=HOUR)
    assert shown(harness)["baseline"] == pytest.approx(0.7)
    assert shown(harness)["evidence_days"] < 30


def test_a_criterion_that_is_switched_off_for_a_while_accepts_a_new_level() -> None:
    harness = frozen_alarm(UNLIMITED)
    own = harness.evaluator
    reconfigure(harness, Evaluator(own.criteria, {"refund": ()}))
    reconfigure(harness, own)
    publish_scores(harness, *[0.7, 0.8] * 360, each=HOUR)
    learned = shown(harness, LEARNED)
    assert learned["evidence_days"] < 30
    assert 0.6 < learned["baseline"] < 0.75


@pytest.mark.parametrize(
    ("turn", "logged"),
    [
        (ReferenceTurn("Please"), 0),
        (ReferenceTurn(rubrics=(TurnRubric("polite", "It is polite."),)), 0),
        (ReferenceTurn(tool_calls=()), 1),
        (ReferenceTurn(agents={"sub": ReferenceTurn(response="Done")}), 1),
    ],
)
def test_a_series_begins_anew_with_other_expectations_only(
    turn: ReferenceTurn, logged: int
) -> None:
    harness = drifting(Criterion("trajectory", Trajectory(), 0.5))
    publish_scores(harness, *[1.0] * 50, *[0.0] * 40)
    other = ReferenceSet([Reference("refund", (turn,))])
    harness.sink.configure(harness.evaluator, other, drift=Drift())
    with structlog.testing.capture_logs() as logs:
        publish_scores(harness, 0.0, 0.0)
    evidence = shown(harness, ("planner", "refund", "trajectory", "threshold"))["evidence_days"]
    assert (evidence < 365, len(logs)) == (bool(logged), logged)


def test_without_the_section_nothing_is_detected() -> None:
    harness = drifting(drift=None)
    publish_scores(harness, *[1.0] * 50, *[0.0] * 40)
    assert harness.series("pathgauge_drift_evidence_days") == {}
    assert harness.series("pathgauge_drift_limit") == {}

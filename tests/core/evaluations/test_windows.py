"""The rules of the windows: each rule separately, and all together against a simple model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import permutations

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.window_refill import Refill
from pathgauge.collector.core.evaluations.windows import Window, Windows
from pathgauge.collector.core.references import Match
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score
from support.examples import examples


def evaluation(
    number: int,
    scores: dict[str, float | None] | float,
    *,
    revision: int = 0,
    agent: str | None = "planner",
    scenario: str | None = None,
) -> Evaluation:
    scores = scores if isinstance(scores, dict) else {"quality": scores}
    results = tuple(
        Result(
            Criterion(metric, Failure()),
            Score(value, None if value is not None else "undefined"),
            "informational",
        )
        for metric, value in scores.items()
    )
    invocation = Invocation(
        f"{number:032x}", f"{number:016x}", "test", agent=agent, scenario_id=scenario
    )
    return Evaluation(
        invocation, Match(unmatched="no_scenario_id"), results, "root_ended", revision
    )


def means(windows: Windows, now: float = 0) -> dict[str, float]:
    return {window.metric: window.mean for window in windows.snapshot(now)}


def test_a_window_has_the_mean_minimum_count_and_time_of_its_scores() -> None:
    windows = Windows()
    for number, (value, now) in enumerate([(0.5, 10), (0.25, 20), (0.75, 30)]):
        windows.record(evaluation(number, value, scenario="s1"), now)
    assert windows.snapshot(30) == [
        Window("planner", "s1", "quality", mean=0.5, minimum=0.25, samples=3, last=30)
    ]


def test_the_mean_is_exact() -> None:
    windows = Windows()
    for number in range(10):
        windows.record(evaluation(number, 0.1), 0)
    assert means(windows) == {"quality": 0.1}


def test_the_mean_of_enormous_scores_is_finite() -> None:
    windows = Windows()
    for number in range(4):
        windows.record(evaluation(number, 1e308), 0)
    assert means(windows) == {"quality": 1e308}


def test_nothing_recorded_gives_no_window() -> None:
    assert Windows().snapshot(0) == []


def test_a_score_without_value_does_not_count() -> None:
    windows = Windows()
    windows.record(evaluation(1, {"quality": None, "speed": 3.0}), 0)
    assert means(windows) == {"speed": 3.0}


def test_each_agent_scenario_and_metric_has_a_window_of_its_own() -> None:
    windows = Windows()
    windows.record(evaluation(1, {"quality": 0.1, "speed": 7.0}, agent="a", scenario="s1"), 0)
    windows.record(evaluation(2, 0.2, agent="a", scenario="s2"), 0)
    windows.record(evaluation(3, 0.3, agent=None), 0)
    assert {(w.agent, w.scenario, w.metric): w.mean for w in windows.snapshot(0)} == {
        ("a", "s1", "quality"): 0.1,
        ("a", "s1", "speed"): 7.0,
        ("a", "s2", "quality"): 0.2,
        ("", "", "quality"): 0.3,
    }


def test_the_scenario_is_that_of_the_matched_reference() -> None:
    reference = Reference("from-the-reference", (ReferenceTurn(),))
    seen = evaluation(1, 1.0)
    windows = Windows()
    windows.record(
        Evaluation(
            seen.invocation, Match(reference, reference.turns[0], 0), seen.results, "root_ended"
        ),
        0,
    )
    assert [window.scenario for window in windows.snapshot(0)] == ["from-the-reference"]


def test_a_given_series_takes_precedence_over_the_invocation() -> None:
    windows = Windows()
    windows.record(evaluation(1, 1.0, agent="a", scenario="s"), 0, Series("b", "__other__"))
    assert [(window.agent, window.scenario) for window in windows.snapshot(0)] == [
        ("b", "__other__")
    ]


def test_the_newest_scores_push_the_oldest_out() -> None:
    windows = Windows(size=2)
    for number, value in enumerate([0.0, 0.5, 1.0]):
        windows.record(evaluation(number, value), 0)
    assert means(windows) == {"quality": 0.75}


def test_scores_leave_when_they_are_older_than_the_maximum_age() -> None:
    windows = Windows(max_age_s=60)
    windows.record(evaluation(1, 0.0), 0)
    windows.record(evaluation(2, 1.0), 30)
    assert [means(windows, now) for now in (60, 61, 90, 91)] == [
        {"quality": 0.5},
        {"quality": 1.0},
        {"quality": 1.0},
        {},
    ]
    assert len(windows) == 0


def test_a_stale_window_is_not_reported_and_comes_back_whole() -> None:
    windows = Windows(max_age_s=1000, stale_after_s=60)
    windows.record(evaluation(1, 0.0), 0)
    assert [means(windows, now) for now in (60, 61)] == [{"quality": 0.0}, {}]
    windows.record(evaluation(2, 1.0), 500)
    assert means(windows, 500) == {"quality": 0.5}


def test_an_unevaluated_invocation_does_not_keep_a_window_from_going_stale() -> None:
    windows = Windows(stale_after_s=60)
    windows.record(evaluation(1, 0.5), 0)
    windows.record(evaluation(2, {"quality": None}), 50)
    assert means(windows, 61) == {}


def test_a_revision_replaces_the_earlier_score() -> None:
    windows = Windows()
    windows.record(evaluation(1, 0.0), 0)
    windows.record(evaluation(2, 0.5), 10)
    windows.record(evaluation(1, 1.0, revision=1), 20)
    assert windows.snapshot(20) == [
        Window("planner", "", "quality", mean=0.75, minimum=0.5, samples=2, last=10)
    ]


def test_the_same_evaluation_recorded_twice_counts_once() -> None:
    windows = Windows()
    windows.record(evaluation(1, 0.5), 0)
    windows.record(evaluation(1, 0.5), 0)
    assert [window.samples for window in windows.snapshot(0)] == [1]


def test_a_revised_score_keeps_its_age() -> None:
    windows = Windows(max_age_s=60)
    windows.record(evaluation(1, 0.0), 0)
    windows.record(evaluation(1, 1.0, revision=1), 50)
    assert means(windows, 61) == {}


def test_a_revision_can_add_the_first_score_at_the_age_of_its_evaluation() -> None:
    windows = Windows(size=2)
    windows.record(evaluation(1, {"quality": None}), 0)
    windows.record(evaluation(2, 0.2), 1)
    windows.record(evaluation(1, 0.1, revision=1), 2)
    assert means(windows, 2) == {"quality": pytest.approx(0.15)}
    windows.record(evaluation(3, 0.3), 3)
    assert means(windows, 3) == {"quality": 0.25}


def test_a_revision_can_remove_a_score_and_the_next_restore_it() -> None:
    windows = Windows()
    windows.record(evaluation(1, {"quality": 0.5, "speed": 1.0}), 0)
    windows.record(evaluation(1, {"speed": 1.0}, revision=1), 0)
    assert means(windows) == {"speed": 1.0}
    windows.record(evaluation(1, {"quality": 0.7, "speed": 1.0}, revision=2), 0)
    assert means(windows) == {"quality": 0.7, "speed": 1.0}


@pytest.mark.parametrize("order", [*permutations((0, 1, 16))])
def test_the_highest_revision_counts_whatever_came_last(order: tuple[int, ...]) -> None:
    windows = Windows()
    for revision in order:
        windows.record(evaluation(1, float(revision), revision=revision), 0)
    assert means(windows) == {"quality": 16.0}


def test_revisions_that_wait_for_the_first_one_are_bounded_and_end_with_a_withdrawal() -> None:
    windows = Windows()
    for number in range(1_002):
        windows.record(evaluation(number, 16.0, revision=16), 0)
    windows.withdraw(evaluation(1_001, 0.0).key)
    for number in (0, 1, 2, 1_000, 1_001):
        windows.record(evaluation(number, 0.0, scenario=str(number)), 0)
    found = {window.scenario: window.mean for window in windows.snapshot(0)}
    assert found == {"0": 0.0, "1": 0.0, "": 16.0, "1001": 0.0}


def test_a_revision_can_move_the_scores_to_another_scenario() -> None:
    windows = Windows()
    windows.record(evaluation(1, 0.5), 0)
    windows.record(evaluation(1, 0.6, revision=1, scenario="s1"), 0)
    assert [(window.scenario, window.mean) for window in windows.snapshot(0)] == [("s1", 0.6)]


def test_a_revision_of_an_evaluation_that_was_pushed_out_adds_nothing() -> None:
    windows = Windows(size=2)
    for number in range(3):
        windows.record(evaluation(number, 0.5), 0)
    windows.withdraw(evaluation(2, 0.5).key)
    windows.record(evaluation(0, 1.0, revision=1), 0)
    assert [(window.mean, window.samples) for window in windows.snapshot(0)] == [(0.5, 1)]


def test_a_score_pushed_out_of_one_window_only_does_not_return_there() -> None:
    windows = Windows(size=1)
    windows.record(evaluation(1, {"quality": 0.1, "speed": 0.1}), 0)
    windows.record(evaluation(2, {"quality": 0.2}), 0)
    windows.withdraw(evaluation(2, 0.2).key)
    windows.record(evaluation(1, {"quality": 0.9, "speed": 0.9}, revision=1), 0)
    assert means(windows) == {"speed": 0.9}


@pytest.mark.parametrize("now", [0, 61])
def test_a_revision_of_an_unknown_or_too_old_evaluation_adds_nothing(now: float) -> None:
    windows = Windows(max_age_s=60)
    windows.record(evaluation(1, 0.5), 0)
    windows.record(evaluation(2 if now == 0 else 1, 1.0, revision=1), now)
    assert means(windows, now) == ({"quality": 0.5} if now == 0 else {})


def test_a_withdrawn_evaluation_leaves_all_its_windows_and_its_revisions_add_nothing() -> None:
    windows = Windows()
    windows.record(evaluation(1, {"quality": 0.0, "speed": 1.0}), 0)
    windows.record(evaluation(2, 1.0), 0)
    windows.withdraw(evaluation(1, 0.0).key)
    windows.withdraw(("", "never", "seen"))
    windows.record(evaluation(1, 0.0, revision=1), 0)
    assert means(windows) == {"quality": 1.0}
    assert len(windows) == 1


def test_an_earlier_time_is_treated_as_the_latest_one() -> None:
    windows = Windows(max_age_s=60)
    windows.record(evaluation(1, 0.0), 1000)
    windows.record(evaluation(2, 1.0), 5)
    assert [window.last for window in windows.snapshot(5)] == [1000]
    assert means(windows, 1060) == {"quality": 0.5}


def test_memory_is_bounded_by_size_and_by_age_without_a_snapshot() -> None:
    by_size = Windows(size=10)
    by_age = Windows(size=10**9, max_age_s=10)
    for number in range(5000):
        by_size.record(evaluation(number, {"quality": 0.5, "speed": None}), number)
        by_age.record(evaluation(number, 0.5), number)
    assert (len(by_size), len(by_age)) == (10, 11)


def test_a_restored_evaluation_has_the_age_and_the_scores_that_it_had() -> None:
    windows = Windows(size=2, max_age_s=60)
    for number, (value, since) in enumerate([(0.0, 0), (0.25, 10), (0.75, 20)]):
        windows.restore(
            evaluation(number, 0).key, Series("planner", "s1"), {"quality": value}, since
        )
    assert windows.snapshot(20) == [
        Window("planner", "s1", "quality", mean=0.5, minimum=0.25, samples=2, last=20)
    ]
    windows.record(evaluation(1, 1.0, revision=1, scenario="s1"), 30)
    assert windows.snapshot(70) == [
        Window("planner", "s1", "quality", mean=0.875, minimum=0.75, samples=2, last=20)
    ]
    assert [window.samples for window in windows.snapshot(71)] == [1]


def test_a_revision_can_add_the_first_score_of_a_restored_evaluation() -> None:
    windows = Windows()
    windows.restore(evaluation(1, 0).key, Series("planner", ""), {}, 0)
    assert windows.snapshot(0) == []
    windows.record(evaluation(1, 0.5, revision=1), 1)
    assert means(windows) == {"quality": 0.5}


def test_tenants_have_separate_windows() -> None:
    windows = Windows()
    for number, tenant in enumerate(("acme", "umbrella")):
        windows.record(evaluation(number, float(number)), 0, Series("planner", "", tenant))
    assert {(window.tenant, window.mean) for window in windows.snapshot(0)} == {
        ("acme", 0.0),
        ("umbrella", 1.0),
    }


@dataclass
class ModelRecord:
    since: float
    key: tuple[str, str, str]
    revision: int = 0
    values: dict[tuple[str, str], float] = field(default_factory=dict)
    lost: set[tuple[str, str]] = field(default_factory=set)


class Model:
    """The rules in their simplest form: a list that is scanned at every step."""

    def __init__(self, size: int, max_age_s: float) -> None:
        self.size, self.max_age_s = size, max_age_s
        self.all: list[ModelRecord] = []
        self.early: dict[tuple[str, str, str], Evaluation] = {}

    def expire(self, now: float) -> None:
        self.all = [r for r in self.all if now - r.since <= self.max_age_s]

    def record(self, evaluation: Evaluation, now: float) -> None:
        self.expire(now)
        found = [r for r in self.all if r.key == evaluation.key]
        if not found and evaluation.revision:
            self.early[evaluation.key] = evaluation
        elif not found:
            found = [ModelRecord(now, evaluation.key)]
            self.all += found
            evaluation = self.early.pop(evaluation.key, evaluation)
        elif evaluation.revision < max(r.revision for r in found):
            return
        agent = evaluation.invocation.agent or ""
        for record in found:
            record.revision = evaluation.revision
            given = {
                (agent, r.criterion.name): r.score.value
                for r in evaluation.results
                if r.score.value is not None
            }
            given[agent, ""] = 0
            record.values = {
                place: value for place, value in given.items() if place not in record.lost
            }
            for place in list(record.values):
                held = [r for r in self.all if place in r.values]
                for pushed_out in held[: -self.size]:
                    del pushed_out.values[place]
                    pushed_out.lost.add(place)
        self.all = [r for r in self.all if r.values]

    def withdraw(self, key: tuple[str, str, str]) -> None:
        self.early.pop(key, None)
        self.all = [r for r in self.all if r.key != key]

    def snapshot(self, now: float) -> dict[tuple[str, str], tuple[float, float, int, float]]:
        self.expire(now)
        shown = {}
        for place in {place for r in self.all for place in r.values if place[1]}:
            held = [r for r in self.all if place in r.values]
            values = [r.values[place] for r in held]
            shown[place] = math.fsum(values) / len(values), min(values), len(values), held[-1].since
        return shown


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["record", "record", "record", "revise", "withdraw"]),
        st.integers(0, 11),
        st.dictionaries(
            st.sampled_from(["quality", "speed"]),
            st.one_of(st.none(), st.integers(0, 4).map(float)),
            max_size=2,
        ),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0, 0, 1, 4]),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=examples(300))
@given(steps=STEPS, size=st.integers(1, 4), max_age_s=st.sampled_from([3, 10, 1000]))
def test_any_sequence_of_operations_gives_the_same_as_a_simple_model(
    steps: list[tuple[str, int, dict[str, float | None], str, int]], size: int, max_age_s: int
) -> None:
    windows, model, now = (
        Windows(size, max_age_s, stale_after_s=math.inf),
        Model(size, max_age_s),
        0.0,
    )
    for step, number, scores, agent, pause in steps:
        now += pause
        told = evaluation(number, scores, revision=int(step == "revise"), agent=agent)
        if step == "withdraw":
            windows.withdraw(told.key)
            model.withdraw(told.key)
        else:
            windows.record(told, now)
            model.record(told, now)
        assert {
            (w.agent, w.metric): (w.mean, w.minimum, w.samples, w.last)
            for w in windows.snapshot(now)
        } == model.snapshot(now)
        assert len(windows) == len(model.all)


SCORES = st.dictionaries(st.sampled_from(["quality", "speed"]), st.integers(0, 4).map(float))


@settings(deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 11), SCORES, st.sampled_from([0, 1, 4])), max_size=40),
    size=st.integers(1, 4),
    max_age_s=st.sampled_from([3, 10, 1000]),
)
def test_restored_windows_equal_those_before_the_restart(
    steps: list[tuple[int, dict[str, float], int]], size: int, max_age_s: int
) -> None:
    before, now = Windows(size, max_age_s), 0.0
    stored: dict[int, tuple[float, dict[str, float]]] = {}
    versions = (None, "v1", "v2", "v1")
    for number, scores, pause in steps:
        now += pause
        since, known = stored.get(number, (now, None))
        told = scores if known is None else {metric: score + 1 for metric, score in known.items()}
        stored[number] = since, told
        version = versions[number % len(versions)]
        before.record(
            evaluation(number, dict(told.items()), revision=int(known is not None)),
            now,
            version=version,
        )
    after = Windows(size, max_age_s)
    refill = Refill(after)
    for number, (since, told) in reversed(stored.items()):
        refill.take(
            evaluation(number, 0).key,
            Series("planner", ""),
            told,
            since,
            versions[number % len(versions)],
        )
    refill.finish()
    assert sorted(after.snapshot(now), key=str) == sorted(before.snapshot(now), key=str)


def test_a_refill_keeps_only_evaluations_that_fit_into_a_window() -> None:
    windows = Windows(size=2)
    refill = Refill(windows)
    taken = [
        ({"quality": 0.1}, "v1"),
        ({"quality": 0.2}, "v1"),
        ({"quality": 0.3}, "v1"),
        ({"quality": 0.4}, "v2"),
        ({"quality": 0.5, "speed": 1.0}, "v1"),
        ({}, "v2"),
        ({"quality": 0.6}, None),
    ]
    for number, (scores, version) in enumerate(taken):
        refill.take(evaluation(number, 0).key, Series("planner", ""), scores, 0, version)
    refill.finish()
    assert of_versions(windows) == {
        ("quality", None): (0.2, 0.1),
        ("quality", "v1"): (0.2, 0.1),
        ("quality", "v2"): (0.4,),
        ("speed", None): (1.0,),
        ("speed", "v1"): (1.0,),
    }
    assert len(windows) == 4


def of_versions(windows: Windows) -> dict[tuple[str, str | None], tuple[float, ...]]:
    return {(window.metric, window.version): window.values for window in windows.snapshot(0)}


def test_each_version_has_an_additional_window() -> None:
    windows = Windows(size=2)
    for number, (value, version) in enumerate([(0.1, "v2"), (0.2, "v1"), (0.3, "v1"), (0.4, None)]):
        windows.record(evaluation(number, value), 0, version=version)
    assert of_versions(windows) == {
        ("quality", None): (0.3, 0.4),
        ("quality", "v1"): (0.2, 0.3),
        ("quality", "v2"): (0.1,),
    }


def test_revisions_and_withdrawals_apply_to_the_window_of_the_version() -> None:
    windows = Windows()
    first, second = evaluation(1, 0.1), evaluation(2, 0.2)
    for one in (first, second):
        windows.record(one, 0, version="v1")
    windows.record(evaluation(1, 0.9, revision=1), 0, version="v2")
    windows.withdraw(second.key)
    assert of_versions(windows) == {("quality", None): (0.9,), ("quality", "v2"): (0.9,)}


def test_windows_of_versions_are_restored_and_forgotten_with_the_others() -> None:
    windows = Windows()
    windows.restore(
        ("", "t", "s"), Series("planner", "s1"), {"quality": 0.5, "speed": 1.0}, 0, "v1"
    )
    windows.forget(lambda series, metric: metric == "speed")
    assert of_versions(windows) == {("quality", None): (0.5,), ("quality", "v1"): (0.5,)}

"""The guarantee of the detector, its delays, and its state. All seeds are fixed."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from random import Random
from statistics import median

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.drift.detector import BETS, MAX_EVIDENCE, Detector

YEAR = math.log(876_000)
"""A year of 100 evaluations an hour."""

Draw = Callable[[Random, float], float]


def bernoulli(random: Random, mean: float) -> float:
    return float(random.random() < mean)


def beta(random: Random, mean: float) -> float:
    mean = min(max(mean, 1e-3), 1 - 1e-3)
    return random.betavariate(mean * 8, (1 - mean) * 8)


def half_or_whole(random: Random, mean: float) -> float:
    return 0.5 if random.random() < 2 * (1 - mean) else 1.0


DRAWS = (bernoulli, beta, half_or_whole)


def scores(draw: Draw, seed: str, *phases: tuple[int, float]) -> Iterator[float]:
    """So many scores with each mean."""
    random = Random(seed)
    return (draw(random, mean) for count, mean in phases for _ in range(count))


class PerEvaluation:
    """A detector with a fixed baseline whose unit of evidence is one evaluation."""

    def __init__(self, baseline: float) -> None:
        self.detector = Detector()
        self._baseline = baseline
        self._count = 0

    def update(self, score: float) -> float:
        """Add a score; returns the natural logarithm of the evidence."""
        self._count += 1
        evidence = self.detector.update(score, self._baseline, 1.0, self._count, score)
        return math.log(max(evidence, 1e-300))


def first_alarm(baseline: float, values: Iterable[float], limit: float = YEAR) -> int | None:
    """How many scores it takes until the evidence reaches a limit, a logarithm."""
    detector = PerEvaluation(baseline)
    for number, value in enumerate(values, 1):
        if detector.update(value) >= limit:
            return number
    return None


def delays(draw: Draw, baseline: float, low: float, runs: int = 25) -> list[float]:
    """Scores after a fall from 0.95 until the alarm."""
    alarms = (
        first_alarm(baseline, scores(draw, f"fall {low} {run}", (300, 0.95), (4000, low)))
        for run in range(runs)
    )
    return sorted(math.inf if alarm is None else alarm - 300 for alarm in alarms)


@pytest.mark.parametrize("draw", DRAWS)
def test_chance_alone_rarely_reaches_the_limit_while_the_mean_equals_the_baseline(
    draw: Draw,
) -> None:
    """The guarantee is tight here: at most a fifth of the runs of a fifth of the limit reach it."""
    alarms = sum(
        first_alarm(0.93, scores(draw, f"quiet {run}", (100, 0.93)), math.log(500)) is not None
        for run in range(150)
    )
    assert 3 <= alarms <= 30


def test_the_mean_time_to_a_false_alarm_is_at_least_the_limit() -> None:
    limit = 200
    runs = [
        first_alarm(0.9, scores(bernoulli, f"run {run}", (5000, 0.9)), math.log(limit)) or 5000
        for run in range(40)
    ]
    assert limit <= sum(runs) / len(runs) <= 3 * limit


def test_scores_above_the_baseline_raise_no_alarm() -> None:
    assert first_alarm(0.93, scores(bernoulli, "above", (15_000, 0.95))) is None


@pytest.mark.parametrize(
    ("draw", "baseline", "low", "longest"),
    [
        (bernoulli, 0.94, 0.8, 120),
        (bernoulli, 0.94, 0.6, 30),
        (bernoulli, 0.94, 0.0, 7),
        (beta, 0.94, 0.9, 115),
        (beta, 0.94, 0.8, 20),
        pytest.param(bernoulli, 0.94, 0.9, 930, marks=pytest.mark.slow),
        pytest.param(bernoulli, 0.95, 0.9, 520, marks=pytest.mark.slow),
        pytest.param(bernoulli, 0.93, 0.8, 145, marks=pytest.mark.slow),
        pytest.param(beta, 0.93, 0.9, 215, marks=pytest.mark.slow),
    ],
)
def test_a_fall_is_found_within_about_the_shortest_possible_time(
    draw: Draw, baseline: float, low: float, longest: float
) -> None:
    assert median(delays(draw, baseline, low)) <= longest


def test_a_long_time_of_perfect_scores_does_not_delay_an_alarm() -> None:
    assert first_alarm(0.98, [1.0] * 5000 + [0.0] * 50) in range(5001, 5007)


def test_the_change_is_found_with_the_scores_since_then() -> None:
    detector = Detector()
    for minute in range(1000):
        detector.update(float(minute < 900 or minute % 2), 0.9, 1 / 1440, minute, 5.0)
    change = detector.change()
    assert change is not None
    assert change.since in range(890, 903)
    assert change.samples == 1000 - change.since
    assert change.mean == pytest.approx(0.5, abs=0.02)
    assert change.expected == pytest.approx(0.9)
    assert change.value == 5.0


def test_there_is_no_change_while_scores_are_perfect() -> None:
    detector = Detector()
    detector.update(1.0, 0.9, 1.0, 1.0, 1.0)
    assert detector.change() is None


def test_the_head_is_evidence_from_the_start() -> None:
    assert Detector(11.0).evidence == 11.0


def test_a_score_at_the_baseline_adds_its_weight_and_nothing_else() -> None:
    assert Detector(2.0).update(0.9, 0.9, 3.0, 0.0, 0.9) == 5.0


def test_a_score_below_the_baseline_multiplies_the_evidence_with_its_own_weight() -> None:
    bets = [5.0 * (1 + bet * 4) for bet in BETS]
    assert Detector(2.0).update(0.5, 0.9, 3.0, 0.0, 0.5) == pytest.approx(sum(bets) / len(BETS))


def test_the_change_is_not_before_the_first_score() -> None:
    detector = Detector()
    detector.update(0.0, 0.9, 0.0, 1e9, 7.0)
    change = detector.change()
    assert change is not None
    assert change == (1e9, 1, 0.0, 0.9, 7.0)


unit = st.floats(0, 1)
Step = tuple[float, float, float, float, float]
steps = st.lists(
    st.tuples(unit, unit, st.floats(0, 30), st.floats(0, 2e9), st.floats(-1e9, 1e9)), max_size=60
)


@given(steps)
def test_evidence_is_finite_and_bounded(steps: list[Step]) -> None:
    detector = Detector()
    for step in steps:
        assert 0 <= detector.update(*step) <= MAX_EVIDENCE


@given(steps, unit, st.floats(0, 1), st.floats(0, 1))
def test_a_lower_score_is_more_evidence(
    steps: list[Step], baseline: float, one: float, other: float
) -> None:
    def after(score: float) -> float:
        detector = Detector(1.0)
        for step in steps:
            detector.update(*step)
        return detector.update(score, baseline, 1.0, 0.0, 0.0)

    assert after(min(one, other)) >= after(max(one, other))


@given(steps, steps)
def test_a_restored_detector_continues_exactly(before: list[Step], after: list[Step]) -> None:
    detector = Detector(11.0)
    for step in before:
        detector.update(*step)
    restored = Detector.restored(json.loads(json.dumps(detector.state())))
    for step in after:
        assert restored.update(*step) == detector.update(*step)
    assert restored.state() == detector.state()
    assert restored.change() == detector.change()


def test_ten_thousand_of_the_worst_and_the_best_scores_overflow_nothing() -> None:
    detector = Detector()
    evidence = [detector.update(0.0, 0.999, 30.0, at, 0.0) for at in range(5000)]
    assert evidence[-1] == MAX_EVIDENCE
    evidence = [detector.update(1.0, 0.999, 0.0, at, 0.0) for at in range(5000)]
    assert 0 <= evidence[-1] < 1e-30


def test_a_detector_is_small() -> None:
    detector = PerEvaluation(0.93)
    for value in scores(beta, "size", (1000, 0.8)):
        detector.update(value)
    assert len(pickle.dumps(detector)) <= 2048


@pytest.mark.slow
@pytest.mark.parametrize("baseline", [0.8, 0.93, 0.98])
@pytest.mark.parametrize("draw", DRAWS)
def test_false_alarms_are_rare_for_every_baseline(draw: Draw, baseline: float) -> None:
    runs = 1000
    alarms = sum(
        first_alarm(baseline, scores(draw, f"{run}", (200, baseline)), math.log(2000)) is not None
        for run in range(runs)
    )
    assert alarms <= runs * 0.1


def test_the_bets_fit_falls_of_all_sizes() -> None:
    assert list(BETS) == sorted(BETS)
    assert 0 < BETS[0] < BETS[-1] < 1

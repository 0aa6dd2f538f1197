"""Which judges an evaluation waits for, when criteria in shadow ask models, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    Evaluator,
    Result,
    WhenJudged,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.shadow import Shadow
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Judged, ShadowJudged
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.scoring import Scoring
from pathgauge.collector.store import pending_judgments
from pathgauge.scorers.types import Invocation, Score
from support.judged import JUDGED, WORKS
from support.memory_store import memory_store

RUN = Invocation("ab" * 16, "cd" * 8, "genai", agent="support")
KEY = ("", RUN.trace_id, RUN.span_id)
STRICTER = replace(JUDGED, threshold=0.9)


def shadow_of(*criteria: Criterion, setup: str = "new") -> Shadow:
    return Shadow(Evaluator(criteria), ReferenceSet(), setup)


class Life:
    """A `Scoring`, and what it waits for."""

    def __init__(
        self,
        *active: Criterion,
        shadow: Shadow | None = None,
        judging: WhenJudged = "later",
        in_shadow: WhenJudged = "later",
    ) -> None:
        self.telemetry = InternalTelemetry()
        self.evaluator = Evaluator(active)
        self.scoring = Scoring(
            self.evaluator,
            self.telemetry,
            lambda invocation, scenario: judging,
            frozenset(),
            shadow or shadow_of(STRICTER),
            judging_in_shadow=lambda invocation, scenario: in_shadow,
        )

    def evaluate(self, revision: int = 0) -> Evaluation:
        return self.scoring.evaluate(RUN, Match(), "idle", revision)

    def waiting(self) -> PendingJudgment | None:
        """What began to wait since the last call, as the store gives it back."""
        begun, _ = self.scoring.changes()
        if not begun:
            return None
        [pending] = begun
        store = memory_store()
        pending_judgments.write(store, [pending], (), 0.0)
        row = store.execute(f"SELECT {pending_judgments.COLUMNS} FROM awaited").fetchone()
        return pending_judgments.read(row)

    def judged(self, pending: PendingJudgment, value: float) -> Judged | ShadowJudged | None:
        criterion = STRICTER if pending.in_shadow else JUDGED
        result = Result(criterion, Score(value), criterion.verdict(value))
        found = Evaluation(RUN, Match(), (result,), "idle", pending.revision)
        if pending.in_shadow:
            return self.scoring.judged_in_shadow(pending, found)
        return self.scoring.judged(pending, found)

    def counted(self) -> dict[tuple[str, ...], int]:
        return dict(self.telemetry.shadow_changes.items())


def asked(pending: PendingJudgment | None) -> PendingJudgment:
    assert pending is not None
    return pending


def test_judges_in_shadow_are_asked_after_the_active_ones_and_compared() -> None:
    life = Life(WORKS, JUDGED)
    evaluation = life.evaluate()
    assert evaluation.shadow is not None
    assert not evaluation.shadow.results
    first = asked(life.waiting())
    assert not first.in_shadow
    active = life.judged(first, 0.6)
    assert isinstance(active, Judged)
    second = asked(life.waiting())
    assert second.in_shadow
    assert life.counted() == {}
    found = life.judged(second, 0.6)
    assert isinstance(found, ShadowJudged)
    assert (found.key, found.revision, found.shadow.setup) == (KEY, 0, "new")
    [result] = found.shadow.results
    assert (result.name, result.value, result.verdict) == ("opinion", 0.6, "failed")
    assert life.counted() == {("opinion", "now_fails"): 1}
    assert life.waiting() is None
    assert life.judged(second, 0.6) is None  # answered already


def test_without_active_judges_those_in_shadow_are_asked_at_once() -> None:
    life = Life(WORKS)
    assert not life.evaluate().awaits
    pending = asked(life.waiting())
    assert pending.in_shadow
    assert isinstance(life.judged(pending, 0.95), ShadowJudged)
    assert life.counted() == {("opinion", "other"): 1}


SYNCHRONOUS = replace(WORKS, name="opinion")
"""In shadow, it replaces the judge of the same name."""


@pytest.mark.parametrize(("value", "change"), [(0.1, "now_passes"), (0.9, "same")])
def test_a_scorer_that_replaces_a_judge_is_compared_with_its_answer(
    value: float, change: str
) -> None:
    life = Life(WORKS, JUDGED, shadow=shadow_of(WORKS, SYNCHRONOUS))
    life.evaluate()
    assert life.counted() == {("failure", "same"): 1}
    life.evaluate(revision=1)
    assert isinstance(life.judged(asked(life.waiting()), value), Judged)
    assert life.counted() == {("failure", "same"): 1, ("opinion", change): 1}
    assert life.waiting() is None
    life.evaluate(revision=2)
    life.judged(asked(life.waiting()), value)
    assert life.counted() == {("failure", "same"): 1, ("opinion", change): 1}
    assert life.telemetry.shadow_evaluations.total() == 2


def test_a_scorer_that_replaces_a_judge_is_compared_if_it_is_not_asked_after_all() -> None:
    life = Life(JUDGED, shadow=shadow_of(SYNCHRONOUS))
    life.evaluate()
    life.scoring.configure(Evaluator((SYNCHRONOUS,)), shadow_of(SYNCHRONOUS))
    life.evaluate(revision=1)
    assert life.counted() == {("opinion", "same"): 1}


@pytest.mark.parametrize("answered", [False, True])
def test_a_revision_is_judged_anew_and_counted_once(answered: bool) -> None:
    life = Life(JUDGED)
    life.evaluate()
    first = asked(life.waiting())
    if answered:
        life.judged(first, 0.6)
        first = asked(life.waiting())
    life.evaluate(revision=1)
    second = asked(life.waiting())
    assert life.judged(first, 0.6) is None  # of an earlier revision
    judged = life.judged(second, 0.95)
    assert isinstance(judged, Judged)
    assert judged.first is not answered
    assert isinstance(life.judged(asked(life.waiting()), 0.95), ShadowJudged)
    assert life.counted() == {("opinion", "same"): 1}
    life.evaluate(revision=2)
    life.judged(asked(life.waiting()), 0.95)
    assert isinstance(life.judged(asked(life.waiting()), 0.1), ShadowJudged)
    assert life.counted() == {("opinion", "same"): 1}


def test_a_revision_in_shadow_does_not_bring_an_unsampled_run_to_the_active_judges() -> None:
    life = Life(JUDGED, judging="not_sampled")
    life.evaluate()
    assert asked(life.waiting()).in_shadow
    [result] = life.evaluate(revision=1).results
    assert result.score.reason == "not_sampled"
    assert asked(life.waiting()).in_shadow


@pytest.mark.parametrize("reason", ["not_sampled", "overloaded"])
def test_what_is_not_judged_in_shadow_has_the_reason(reason: WhenJudged) -> None:
    life = Life(JUDGED, in_shadow=reason)
    evaluation = life.evaluate()
    assert evaluation.shadow is not None
    [result] = evaluation.shadow.results
    assert result.reason == {"overloaded": "judge_overloaded"}.get(reason, reason)
    life.judged(asked(life.waiting()), 0.6)
    assert life.waiting() is None


@pytest.mark.parametrize("changed", [None, shadow_of(STRICTER, setup="newer")])
def test_answers_for_an_earlier_shadow_are_counted_as_errors(changed: Shadow | None) -> None:
    life = Life(WORKS)
    life.evaluate()
    pending = asked(life.waiting())
    life.scoring.configure(life.evaluator, changed)
    assert life.judged(pending, 0.6) is None
    assert life.telemetry.shadow_errors.total() == 1
    assert life.counted() == {}
    _, ended = life.scoring.changes()
    assert ended == (KEY,)


def test_a_withdrawn_run_is_not_judged_in_shadow() -> None:
    life = Life(WORKS)
    life.evaluate()
    pending = asked(life.waiting())
    life.scoring.withdraw(KEY)
    assert life.judged(pending, 0.6) is None
    assert life.telemetry.invocations_skipped.total() == 0

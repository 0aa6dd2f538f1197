"""Verdicts: thresholds in both directions, and scorers that fail."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from pathgauge import (
    Failure,
    Latency,
    MaxTurns,
    Reference,
    ReferenceTurn,
    Score,
    Scorer,
    ToolTrajectoryF1,
)
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluator,
    SessionResult,
    Verdict,
)
from pathgauge.collector.core.evaluations.scorer_watch import ScorerWatch
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.scorers.adapters.functions import from_function
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.composite.composite import Composite, Member
from pathgauge.scorers.types import Invocation

UNMATCHED = Match(unmatched="no_scenario_id")


def scoring(value: Any) -> Scorer:
    """A scorer that returns a fixed score."""
    return from_function(lambda invocation: value)


@pytest.mark.parametrize(
    ("scorer", "threshold", "value", "verdict"),
    [
        (ToolTrajectoryF1(), 0.8, 0.8, "passed"),
        (ToolTrajectoryF1(), 0.8, 0.8 - 1e-10, "passed"),
        (ToolTrajectoryF1(), 0.8, 0.8 - 1e-8, "failed"),
        (ToolTrajectoryF1(), 0.8, 1.0, "passed"),
        (ToolTrajectoryF1(), 0.8, None, "not_evaluated"),
        (ToolTrajectoryF1(), None, 0.8, "informational"),
        (ToolTrajectoryF1(), None, None, "not_evaluated"),
        (Latency(), 5, 5.0, "passed"),
        (Latency(), 5, 5 + 1e-10, "passed"),
        (Latency(), 5, 5 + 1e-8, "failed"),
        (Latency(), 5, 0.0, "passed"),
        (Failure(), 0, 1.0, "failed"),
    ],
)
def test_a_verdict_compares_in_the_direction_of_the_scorer(
    scorer: Scorer, threshold: float | None, value: float | None, verdict: Verdict
) -> None:
    assert Criterion("c", scorer, threshold).verdict(value) == verdict


class Wild:
    """A scorer that fails."""

    name = version = "wild"
    low, high, higher_is_better, needs_reference = 0.0, 1.0, True, False

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Any:
        return self.returned


class UnreadableError(Exception):
    """An exception without a text."""

    def __str__(self) -> str:
        raise ValueError("nobody foresaw this")


def raise_unreadable(invocation: Invocation) -> float:
    raise UnreadableError


def raising(error: BaseException) -> Any:
    """A scorer that raises this."""

    def score(invocation: Invocation) -> float:
        raise error

    return from_function(score)


def wild(value: Any) -> Any:
    """A scorer that returns a score with this value."""
    return Wild(Score(value))


def returning_reason(reason: Any) -> Any:
    """A scorer that returns a score without a value for this reason."""
    return Wild(Score(None, reason))


@pytest.mark.parametrize(
    ("scorer", "explanation"),
    [
        (scoring(math.nan), "nan is outside [0.0, 1.0]"),
        (scoring(math.inf), "inf is outside [0.0, 1.0]"),
        (scoring(1.5), "1.5 is outside [0.0, 1.0]"),
        (
            scoring("good"),
            "TypeError: returned str, expected a number, true or false, a dictionary or None",
        ),
        (from_function(lambda invocation: 1 / 0), "ZeroDivisionError: division by zero"),
        (Composite((Member("odd", scoring(2), 1),)), "ValueError: odd: 2.0 is outside [0.0, 1.0]"),
        (Wild(0.5), "TypeError: returned float, expected a Score"),
        (Wild(None), "TypeError: returned NoneType, expected a Score"),
        (Wild(Score(None)), "returned neither a value nor a reason why there is none"),
        (from_function(raise_unreadable), "UnreadableError: its text cannot be read"),
        (returning_reason(5), "TypeError: returned the reason 5, expected a text"),
        (wild("high"), "TypeError: returned the value 'high', expected a number"),
        (wild(1j), "TypeError: returned the value 1j, expected a number"),
        (wild(10**400), "OverflowError: int too large to convert to float"),
    ],
)
def test_a_failing_scorer_gives_an_error_and_does_not_affect_others(
    scorer: Any, explanation: str
) -> None:
    wrong, right = Criterion("wrong", scorer, 1), Criterion("right", Failure(), 0)
    evaluation = Evaluator((wrong, right)).evaluate(invocation(), UNMATCHED)
    assert [(result.verdict, result.score) for result in evaluation.results] == [
        ("error", Score(None, None, explanation)),
        ("passed", Score(0.0, None, "no error")),
    ]


def test_the_caller_hears_of_each_scorer_that_fails_and_what_it_has_raised() -> None:
    error = RuntimeError("out of paper")
    heard: list[tuple[str, BaseException | None, str]] = []
    watch = ScorerWatch(lambda *failure: heard.append(failure))
    scorers = (Wild(Score(None)), raising(error), scoring(1.0))
    criteria = tuple(Criterion(f"number_{at}", one) for at, one in enumerate(scorers))
    found = invocation(trace_id="of the trace")
    Evaluator(criteria).evaluate(found, UNMATCHED, watch=watch)
    assert heard == [("number_0", None, "of the trace"), ("number_1", error, "of the trace")]


def test_the_time_of_each_scorer_is_counted_by_criterion() -> None:
    now = [0.0]

    def taking(seconds: float) -> Any:
        def score(invocation: Invocation) -> float:
            now[0] += seconds
            return 1.0

        return from_function(score)

    watch = ScorerWatch(clock=lambda: now[0])
    watch.expect(["unused"])
    criteria = Criterion("slow", taking(2.0)), Criterion("fast", taking(0.25))
    for _ in range(2):
        Evaluator(criteria).evaluate(invocation(), UNMATCHED, watch=watch)
    watch.expect(["slow"])
    assert watch.seconds == {"unused": 0.0, "slow": 4.0, "fast": 0.5}


def test_the_caller_hears_of_a_scorer_of_sessions_that_fails() -> None:
    class Broken(Wild):
        def score_session(self, turns: object, expected: object) -> Score:
            raise self.returned

    error = RuntimeError("out of paper")
    heard: list[tuple[str, BaseException | None, str]] = []
    watch = ScorerWatch(lambda *failure: heard.append(failure))
    Evaluator((Criterion("broken", cast(Any, Broken(error))),)).evaluate_session(
        invocation(trace_id="of the trace"), UNMATCHED, SessionResult("idle", ()), watch=watch
    )
    assert heard == [("broken", error, "of the trace")]


@pytest.mark.parametrize(
    "value", [Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.float64(0.5), np.array(0.5)]
)
def test_numbers_of_other_libraries_become_floats(value: Any) -> None:
    """The store cannot write them, and a result that it cannot write would stop all others."""
    evaluator = Evaluator((Criterion("c", wild(value), 1),))
    (result,) = evaluator.evaluate(invocation(), UNMATCHED).results
    assert (result.verdict, result.score) == ("failed", Score(0.5))
    assert type(result.score.value) is float


@pytest.mark.parametrize("value", [True, 1])
def test_whole_numbers_and_truth_become_floats(value: Any) -> None:
    evaluator = Evaluator((Criterion("c", wild(value), 1),))
    (result,) = evaluator.evaluate(invocation(), UNMATCHED).results
    assert (result.verdict, repr(result.score.value)) == ("passed", "1.0")


def test_a_value_outside_the_range_by_rounding_is_accepted() -> None:
    evaluation = Evaluator((Criterion("c", scoring(1 + 1e-10), 1),)).evaluate(
        invocation(), UNMATCHED
    )
    assert evaluation.results[0].verdict == "passed"


def test_without_a_reference_only_criteria_that_need_none_are_run() -> None:
    f1, latency = Criterion("f1", ToolTrajectoryF1(), 1), Criterion("latency", Latency(), 9)
    both = Criterion(
        "both", Composite((Member("f1", f1.scorer, 1), Member("latency", latency.scorer, 9))), 1
    )
    evaluator = Evaluator((f1, latency, both))
    turn = ReferenceTurn(tool_calls=())
    match = Match(Reference("s", (turn,)), turn, 0)
    assert [
        result.criterion.name for result in evaluator.evaluate(invocation(), UNMATCHED).results
    ] == ["latency"]
    assert [
        result.criterion.name for result in evaluator.evaluate(invocation(), match).results
    ] == ["f1", "latency", "both"]


def test_max_turns_counts_the_turns_that_the_collector_has_numbered() -> None:
    """Not with a reference of one turn, which may be any turn of a conversation."""
    criterion = Criterion("max_turns", MaxTurns(1, of="user"), 1.0)
    turns = (ReferenceTurn(tool_calls=()), ReferenceTurn(tool_calls=()))
    found = [
        Evaluator((criterion,)).evaluate(invocation(), Match(reference, turn, index)).results[0]
        for reference, turn, index in (
            (Reference("two", turns), turns[0], 0),
            (Reference("two", turns), turns[1], 1),
            (Reference("one", turns[:1]), turns[0], 0),
        )
    ]
    assert [result.score.value for result in found] == [1.0, 0.0, None]


TRIP = Reference("trip", (ReferenceTurn(), ReferenceTurn()))
OWN = (Criterion("failure", Failure(), 0.0), Criterion("f1", ToolTrajectoryF1(), 0.5))


@pytest.mark.parametrize(
    ("turn", "unmatched"), [(2, "unexpected_turn"), (None, "no_conversation_id")]
)
def test_a_turn_that_the_reference_does_not_have_gets_the_criteria_of_its_scenario(
    turn: int | None, unmatched: str
) -> None:
    evaluator = Evaluator((Criterion("latency", Latency(), 1.0),), {"trip": OWN})
    actual = invocation(scenario_id="trip")
    evaluation = evaluator.evaluate(actual, ReferenceSet([TRIP]).match(actual, turn))
    assert evaluation.match.unmatched == unmatched
    assert [result.criterion for result in evaluation.results] == [OWN[0]]


def test_an_invocation_of_an_unknown_scenario_gets_the_global_criteria() -> None:
    criteria = (Criterion("latency", Latency(), 1.0),)
    actual = invocation(scenario_id="unknown")
    evaluation = Evaluator(criteria, {"trip": OWN}).evaluate(
        actual, ReferenceSet([TRIP]).match(actual)
    )
    assert tuple(result.criterion for result in evaluation.results) == criteria

"""Several criteria as one: all must pass, and what the invocations cost that do."""

import math
from typing import Any, ClassVar, get_args

import pytest
from hypothesis import given, strategies as st

from pathgauge import Failure, Latency, Reason, Score, ToolTrajectoryF1
from pathgauge.scorers.adapters.functions import from_function
from pathgauge.scorers.authoring.builders import (
    expected_calls,
    invocation,
    reference_turn,
    tool_calls,
)
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.composite.composite import Composite, CostOfPassed, Member, NotEvaluated
from pathgauge.scorers.types import Invocation, ModelCall, ReferenceTurn

F1 = Member("f1", ToolTrajectoryF1(), 0.8)
FAST = Member("latency", Latency(), 2)
SOUND = Member("failure", Failure(), 0)
EXPECTED = reference_turn(*expected_calls("search fetch"))
BOTH = invocation(*tool_calls("search fetch"))
ONE = invocation(*tool_calls("search"))


class Fixed:
    """A scorer that always says the same."""

    name: ClassVar[str] = "fixed"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def __init__(self, value: float | None) -> None:
        self.value = value

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(self.value, None if self.value is not None else "undefined", "fixed")


def member_details(
    name: str,
    verdict: str,
    value: float | None,
    threshold: float,
    explanation: str,
    *,
    reason: str | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "verdict": verdict,
        "value": value,
        "threshold": threshold,
        "reason": reason,
        "explanation": explanation,
    }


def test_it_passes_when_every_member_does() -> None:
    assert Composite((F1, FAST, SOUND)).score(BOTH, EXPECTED) == Score(
        1.0,
        None,
        "passed: f1, latency, failure",
        {
            "members": [
                member_details("f1", "passed", 1.0, 0.8, "2 of 2 expected calls matched"),
                member_details("latency", "passed", 1.5, 2, "1.5 s"),
                member_details("failure", "passed", 0.0, 0, "no error"),
            ]
        },
    )


def test_it_fails_when_one_member_does_and_says_which() -> None:
    score = Composite((FAST, F1)).score(ONE, EXPECTED)
    assert (score.value, score.explanation) == (
        0.0,
        "failed: f1 (1 of 2 expected calls matched; missing fetch); passed: latency",
    )
    assert score.details["members"][1] == member_details(
        "f1", "failed", 2 / 3, 0.8, "1 of 2 expected calls matched; missing fetch"
    )


def test_a_member_without_a_value_is_listed_and_counts_by_the_option() -> None:
    untimed = invocation(*tool_calls("search fetch"), end_ns=None)
    line = "not evaluated: latency (duration not recorded); passed: f1"
    ignored, failed = (
        Composite((F1, FAST), policy).score(untimed, EXPECTED) for policy in get_args(NotEvaluated)
    )
    assert (ignored.value, ignored.explanation) == (1.0, line)
    assert (failed.value, failed.explanation) == (0.0, line)
    assert ignored.details["members"][1] == member_details(
        "latency", "not_evaluated", None, 2, "duration not recorded", reason="duration_not_recorded"
    )


def test_when_no_member_has_a_value_neither_has_it_unless_that_fails() -> None:
    untimed = invocation(end_ns=None)
    assert Composite((FAST,)).score(untimed, None).reason == "not_applicable"
    assert Composite((FAST,), "fail").score(untimed, None).value == 0.0
    assert Composite().score(untimed, None) == Score(
        None, "not_applicable", "no criteria", {"members": []}
    )


VALUES = st.lists(st.sampled_from([None, 0.0, 0.5, 1.0]), max_size=5)


@given(VALUES)
def test_it_is_the_conjunction_of_the_members_that_have_a_value(values: list[float | None]) -> None:
    members = tuple(Member(str(index), Fixed(value), 0.5) for index, value in enumerate(values))
    known = [value for value in values if value is not None]
    lenient, strict = (
        Composite(members).score(ONE, None),
        Composite(members, "fail").score(ONE, None),
    )
    assert lenient.value == (float(all(value >= 0.5 for value in known)) if known else None)
    assert strict.value == (
        float(None not in values and all(value >= 0.5 for value in known)) if values else None
    )


def test_a_threshold_is_met_up_to_rounding() -> None:
    assert Composite((Member("a", Fixed(0.8 - 1e-12), 0.8),)).score(ONE, None).value == 1.0
    assert Composite((Member("a", Fixed(0.8 - 1e-6), 0.8),)).score(ONE, None).value == 0.0


@pytest.mark.parametrize("value", [math.nan, 1.5])
def test_a_member_whose_value_is_outside_its_range_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match=rf"^odd: {value} is outside \[0.0, 1.0\]$"):
        Composite((F1, Member("odd", Fixed(value), 0.5))).score(BOTH, EXPECTED)


def test_it_needs_a_reference_when_a_member_does() -> None:
    assert [Composite(members).needs_reference for members in ((), (FAST,), (FAST, F1))] == [
        False,
        False,
        True,
    ]
    assert Composite((FAST, F1)).score(BOTH, None) == Score(None, "no_reference", "no reference")


def test_composites_are_members_of_composites() -> None:
    inner = Member("inner", Composite((F1,)), 1)
    assert Composite((inner, FAST)).score(BOTH, EXPECTED).value == 1.0
    assert Composite((inner, FAST)).score(ONE, EXPECTED).value == 0.0


PAID = invocation(
    *tool_calls("search fetch"),
    input_tokens=1_200_000,
    output_tokens=34,
    model_calls=(ModelCall("a"), ModelCall("b")),
)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (
            "total_tokens",
            Score(
                1_200_034.0,
                None,
                "1200000 input and 34 output tokens",
                {"input": 1_200_000, "output": 34},
            ),
        ),
        ("latency", Score(1.5, None, "1.5 s")),
        ("tool_calls", Score(2.0, None, "2 tool calls")),
        ("model_calls", Score(2.0, None, "2 model calls")),
    ],
)
def test_the_cost_of_an_invocation_that_passed(measure: Any, expected: Score) -> None:
    assert CostOfPassed((F1,), measure=measure).score(PAID, EXPECTED) == expected


@pytest.mark.parametrize(
    ("measure", "fields", "reason"),
    [
        ("total_tokens", {"output_tokens": None}, "tokens_not_recorded"),
        ("total_tokens", {"input_tokens": None}, "tokens_not_recorded"),
        ("latency", {"end_ns": None}, "duration_not_recorded"),
        ("tool_calls", {"flags": frozenset({"dropped_spans"})}, "tools_not_recorded"),
        (
            "model_calls",
            {"flags": frozenset({"dropped_spans"}), "model_calls": (ModelCall("a"),)},
            "incomplete",
        ),
        ("model_calls", {}, "incomplete"),
        ("latency", {"error": True}, "undefined"),
    ],
)
def test_a_cost_that_is_not_known_is_no_value(
    measure: Any, fields: dict[str, Any], reason: Reason
) -> None:
    paid = invocation(**({"input_tokens": 1, "output_tokens": 1} | fields))
    any_run = Member("failure", Failure(), 1)
    assert CostOfPassed((any_run,), measure=measure).score(paid, None).reason == reason


def test_an_invocation_that_did_not_pass_has_no_cost() -> None:
    failed = CostOfPassed((F1,)).score(ONE, EXPECTED)
    assert (failed.value, failed.reason) == (None, "not_applicable")
    assert (
        failed.explanation
        == "did not pass: failed: f1 (1 of 2 expected calls matched; missing fetch)"
    )
    assert failed.details["members"][0]["verdict"] == "failed"
    assert (
        CostOfPassed((FAST,), "fail", "tool_calls").score(invocation(end_ns=None), None).reason
        == "not_applicable"
    )
    assert (
        CostOfPassed((FAST,), "ignore", "tool_calls").score(invocation(end_ns=None), None).reason
        == "not_applicable"
    )
    assert CostOfPassed((F1,)).score(BOTH, None).reason == "no_reference"


@pytest.mark.parametrize("options", [{"not_evaluated": "maybe"}, {"measure": "euros"}])
def test_options_without_meaning_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="expected one of"):
        CostOfPassed((F1,), **options)


@pytest.mark.parametrize(
    "scorer",
    [
        Composite(),
        Composite((F1, FAST)),
        Composite((FAST, SOUND), "fail"),
        Composite(
            (
                Member(
                    "own",
                    from_function(lambda invocation: bool(invocation.tool_calls), name="own"),
                    1,
                ),
            )
        ),
        CostOfPassed(),
        CostOfPassed((F1,), "fail", "latency"),
        CostOfPassed((SOUND,), measure="tool_calls"),
        CostOfPassed((SOUND,), measure="model_calls"),
    ],
)
def test_composites_keep_the_contract_of_scorers(scorer: Any) -> None:
    check_scorer(scorer)

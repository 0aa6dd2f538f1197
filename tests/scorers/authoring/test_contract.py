"""`check_scorer` finds what breaks the contract of a scorer."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from pathgauge import Invocation, ReferenceTurn, Score, Scorer
from pathgauge.scorers.authoring.builders import invocation, reference_turn, tool_call
from pathgauge.scorers.authoring.contract import check_scorer


class Plain:
    """1 when there is a response; all that a scorer is, but for the dataclass."""

    name: ClassVar[str] = "answered"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        return Score(
            float(bool(actual.final_response)),
            None,
            "answered" if actual.final_response else "no answer",
        )


@dataclass(frozen=True)
class Answered(Plain):
    pass


@dataclass
class Thawed(Plain):
    pass


class Mutating(Answered):
    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        for call in actual.tool_calls:
            if isinstance(call.arguments, dict):
                call.arguments["seen"] = True
        return super().score(actual, expected)


class Moody(Answered):
    calls = 0

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        type(self).calls += 1
        return Score(1.0, None, f"call {self.calls}")


@dataclass(frozen=True)
class Unhashable(Answered):
    words: list[str] = field(default_factory=list)


def declaring(**attributes: Any) -> Scorer:
    """A good scorer but for these attributes."""
    scorer: Scorer = type("Declaring", (Answered,), attributes)()
    return scorer


def returning(
    value: Any, reason: Any = None, explanation: Any = "because", **details: Any
) -> Scorer:
    """A good scorer but for its scores."""
    return declaring(
        score=lambda self, actual, expected: Score(value, reason, explanation, details)
    )


def test_a_good_scorer_passes() -> None:
    check_scorer(Answered())


A_LIST: Any = [1]

BROKEN: list[tuple[Any, str]] = [
    (Mutating(), "changes what it scores"),
    (Moody(), "scores the same thing differently the second time"),
    (Thawed(), "is not frozen"),
    (Unhashable(), "has an option without a hash"),
    (Plain(), "is not a dataclass"),
    (Answered, "is a class, expected an instance"),
    (
        object(),
        "lacks name, version, low, high, higher_is_better, needs_reference, score of"
        " pathgauge.Scorer",
    ),
    (declaring(name="Answered!"), "has the name 'Answered!', expected snake_case"),
    (declaring(version=""), "has no version"),
    (declaring(high=0.0), r"has the range \[0.0, 0.0\]"),
    (declaring(low=-math.inf), r"has the range \[-inf, 1.0\]"),
    (
        declaring(__eq__=lambda self, other: False, __hash__=object.__hash__),
        "differs from a scorer with the same options",
    ),
    (
        declaring(binary=True, score=lambda self, actual, expected: Score(0.5, None, "half")),
        "returns 0.5, and says that its values are 0 or 1",
    ),
    (declaring(needs_reference=True), "needs a reference, and scores without one"),
    (declaring(score=lambda self, actual, expected: 1.0), "returns float, expected a Score"),
    (returning(1.5), r"returns 1.5, outside \[0.0, 1.0\]"),
    (returning(math.nan), "returns nan, outside"),
    (returning("high"), "returns the value 'high', expected a number"),
    (returning(None), "returns None with the reason None"),
    (returning(1.0, "undefined"), "returns 1.0 with the reason undefined"),
    (
        returning(None, "bad luck"),
        "gives the reason 'bad luck', which is not in pathgauge.Reason",
    ),
    (returning(1.0, explanation=7), "explains itself with 7, expected text"),
    (
        declaring(score=lambda self, actual, expected: Score(1.0, None, "fine", A_LIST)),
        r"has the details \[1\], expected a mapping",
    ),
    (returning(1.0, explanation=""), "explains itself with '', expected one line"),
    (returning(1.0, explanation="two\nlines"), "expected one line"),
    (returning(1.0, names={"a"}), "has details that are not JSON"),
    (returning(1.0, ratio=math.inf), "has details that are not JSON"),
]


@pytest.mark.parametrize(("scorer", "complaint"), BROKEN)
def test_a_broken_scorer_is_told_what_is_wrong(scorer: Any, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_scorer(scorer)


def test_an_exception_of_a_scorer_comes_with_what_it_scored() -> None:
    asked_at_length = declaring(
        score=lambda self, actual, expected: Score(float(len(actual.user_input) > 3), None, "long")
    )
    with pytest.raises(TypeError, match="has no len") as caught:
        check_scorer(asked_at_length, [(invocation(user_input=None), reference_turn())])
    (note,) = caught.value.__notes__
    assert note.startswith("raised by Declaring() on Invocation(")


def test_situations_of_the_author_are_checked_too() -> None:
    only_on_tea = declaring(
        score=lambda self, actual, expected: Score(
            2 if actual.user_input == "tea" else 1, None, "fine"
        )
    )
    check_scorer(only_on_tea)
    with pytest.raises(AssertionError, match="returns 2, outside"):
        check_scorer(
            only_on_tea, [(invocation(tool_call("brew"), user_input="tea"), reference_turn())]
        )

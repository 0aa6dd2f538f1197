"""What several criteria share: one comparison of the same trajectories, what calls ask of
arguments, and its limits.
"""

from typing import Any

import pytest

from pathgauge import ExpectedCall, ToolCall, TooLongError
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.matching.argument_rules import MAX_COST, Rules
from pathgauge.scorers.matching.comparison import (
    ANY_ORDER,
    IN_ORDER,
    RULES,
    Calls,
    Comparison,
    Members,
    Order,
    align,
    compare,
)
from pathgauge.scorers.matching.matchers import AnyOrder, Anything, Matcher, Near, Pattern
from pathgauge.scorers.matching.prepared_reference import PreparedReference

NAMES, ARGUMENTS, REQUIRED = RULES.values()


def comparison(actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...]) -> Comparison:
    return Comparison(Calls(actual), PreparedReference(expected))


def test_the_same_trajectories_are_compared_once() -> None:
    actual, one, other = tool_calls("a b"), expected_calls("a b"), expected_calls("a b")
    first = compare(actual, one)
    assert compare(actual, one) is first
    assert compare(actual, other) is not first
    assert compare(actual, one) is first
    assert first.align(NAMES) is first.align(NAMES)
    assert compare(tool_calls("a b"), one) is not first


def test_equal_calls_with_other_arguments_are_not_confused() -> None:
    expected = (expected_call("a", x=1),)
    found = [
        compare((tool_call("a", x=x),), expected).align(ARGUMENTS).counts.matched
        for x in (1, True, 1.0, "1")
    ]
    assert found == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("actual", "expected", "recorded", "best_case"),
    [
        (
            (tool_call("a"), tool_call("a"), tool_call("x")),
            expected_calls("a b"),
            Members(2, 1, 2),
            Members(2, 1, 2),
        ),
        (
            (ToolCall("a"),),
            (expected_call("a", x=1), ExpectedCall("a")),
            Members(1, 1, 2),
            Members(1, 2, 2),
        ),
        (
            (tool_call("a"),),
            (ExpectedCall("a", optional=True), ExpectedCall("b", optional=True)),
            Members(1, 1, 1),
            Members(1, 1, 1),
        ),
        (
            (),
            (ExpectedCall("a", optional=True), ExpectedCall("b")),
            Members(0, 0, 1),
            Members(0, 0, 1),
        ),
        (
            (tool_call("a", x=5),),
            (expected_call("a", x=Anything()), expected_call("a", x=5)),
            Members(1, 2, 2),
            Members(1, 2, 2),
        ),
    ],
)
def test_members_are_counted_however_often(
    actual: tuple[ToolCall, ...],
    expected: tuple[ExpectedCall, ...],
    recorded: Members,
    best_case: Members,
) -> None:
    assert comparison(actual, expected).members(ARGUMENTS) == (recorded, best_case)


def test_rules_of_single_tools_come_before_the_others() -> None:
    rules = Rules("exact", ((" a\n", "ignore"), ("b", ("x",))))
    assert [rules.of(tool) for tool in "abc"] == ["ignore", ("x",), "exact"]
    actual = (tool_call("a", x=1), tool_call("b", x=1, y=1), tool_call("c", x=1))
    expected = (expected_call("a", x=2), expected_call("b", x=1, y=2), expected_call("c", x=2))
    assert comparison(actual, expected).align(rules).pairs == ((0, 0), (1, 1))


@pytest.mark.parametrize("order", [IN_ORDER, ANY_ORDER])
def test_the_same_arguments_are_matched_once_however_often_they_come(order: Order) -> None:
    actual = tuple(tool_call("a", x=i % 50, y=1) for i in range(2000))
    expected = tuple(expected_call("a", x=Near(i % 50), y=1) for i in range(2000))
    assert MAX_COST < 2000 * 50 * 2
    assert comparison(actual, expected).align(ARGUMENTS, order).counts.matched == 2000


@pytest.mark.slow
def test_too_many_comparisons_with_matchers_are_too_long() -> None:
    side = int((MAX_COST / 2) ** 0.5)
    actual, expected = (
        tuple(tool_call("a", x=i) for i in range(side)),
        tuple(expected_call("a", x=Near(i)) for i in range(side)),
    )
    assert comparison(actual, expected).align(ARGUMENTS).counts.matched == side
    with pytest.raises(TooLongError, match="too many comparisons of arguments with matchers"):
        comparison(
            (*actual, tool_call("a", x=-1)), (*expected, expected_call("a", x=Near(-1)))
        ).align(REQUIRED)


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(AnyOrder([Near(i) for i in range(200)]), id="lists in any order"),
        pytest.param(Pattern(r".*.*[xyz]\d?"), id="a pattern that nearly explodes"),
    ],
)
def test_one_comparison_may_cost_as_much_as_thousands(expected: Matcher) -> None:
    actual = tuple(tool_call("a", x=list(range(200)), i=i) for i in range(40))
    asked = tuple(expected_call("a", x=expected, i=i) for i in range(40))
    with pytest.raises(TooLongError, match="too many comparisons of arguments with matchers"):
        comparison(actual, asked).align(ARGUMENTS)


def test_calls_of_tools_that_the_reference_lacks_are_not_compared() -> None:
    strangers = tuple(tool_call("b", x=i) for i in range(1999))
    expected = tuple(expected_call("a", x=Near(i)) for i in range(1999))
    assert comparison((*strangers, tool_call("a", x=7)), expected).align(ARGUMENTS).pairs == (
        (1999, 7),
    )


def test_another_mode_is_told_the_modes() -> None:
    mode: Any = "names"
    message = "mode: found 'names', expected one of name_only, name_and_args, name_and_required"
    with pytest.raises(ValueError, match=message):
        align((), (), mode)

"""The examples that the documents give who introduced these metrics, with their numbers; where a
number is wrong, it says so.
"""

import pytest

from pathgauge import (
    ExpectedCall,
    MatchType,
    ReferenceTurn,
    ResponseMatchScore,
    ToolCall,
    ToolTrajectoryAvgScore,
    ToolTrajectoryF1,
    TrajectoryAnyOrderMatch,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
    TrajectoryPrecision,
    TrajectoryRecall,
    TrajectorySingleToolUse,
)
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
    tool_calls,
)

# ADK for TypeScript, "Metrics and Scoring"

SEARCH, SUMMARIZE = (
    tool_call("search_web", query="TypeScript generics"),
    tool_call("summarize", maxLength=200),
)
TYPESCRIPT = reference_turn(
    expected_call("search_web", query="TypeScript generics"),
    expected_call("summarize", maxLength=200),
)


@pytest.mark.parametrize(
    ("calls", "value"),
    [
        pytest.param([SEARCH, SUMMARIZE], 1.0, id="same tools, same order, same arguments"),
        pytest.param([SEARCH], 0.0, id="different number of tool calls"),
        pytest.param([SEARCH, SUMMARIZE, SUMMARIZE], 0.0, id="one call more"),
        pytest.param([SEARCH, tool_call("shorten", maxLength=200)], 0.0, id="different tool name"),
        pytest.param(
            [SEARCH, tool_call("summarize", maxLength=100)],
            0.0,
            id="different value of an argument",
        ),
        pytest.param(
            [SEARCH, tool_call("summarize", max_length=200)], 0.0, id="different key of an argument"
        ),
        pytest.param([SUMMARIZE, SEARCH], 0.0, id="different order"),
    ],
)
def test_tool_trajectory_avg_score_is_an_exact_match(calls: list[ToolCall], value: float) -> None:
    assert ToolTrajectoryAvgScore().score(invocation(*calls), TYPESCRIPT).value == value


@pytest.mark.parametrize(
    ("reference", "response", "value"),
    [
        ("The weather in London is sunny", "The weather in London is sunny", 1.0),
        # The document says "~0.57"; 3 common words of 6 and 6 are 0.5.
        ("The weather in London is sunny", "It's sunny in London today", 0.5),
        ("4", "The answer is 4", 0.4),
        ("Hello world", "Goodbye universe", 0.0),
        ("Hello world", "", 0.0),
    ],
)
def test_response_match_score_examples(reference: str, response: str, value: float) -> None:
    assert (
        ResponseMatchScore()
        .score(invocation(final_response=response), reference_turn(response=reference))
        .value
        == value
    )


def test_an_empty_reference_response_is_no_reference() -> None:
    # The document says 0 if either text is empty; a reference without text asks for nothing that
    # could be missed.
    assert (
        ResponseMatchScore()
        .score(invocation(final_response="Hello"), reference_turn(response=""))
        .reason
        == "no_reference"
    )


# google/adk-python#5306, the proposal of tool_trajectory_f1

FOUR = reference_turn(*expected_calls("search fetch rank answer"))


def test_three_of_four_expected_calls_are_better_than_none() -> None:
    three, none = invocation(*tool_calls("search fetch rank")), invocation(*tool_calls("cook"))
    in_order = ToolTrajectoryAvgScore(MatchType.IN_ORDER)
    assert [in_order.score(actual, FOUR).value for actual in (three, none)] == [0.0, 0.0]
    assert [ToolTrajectoryF1().score(actual, FOUR).value for actual in (three, none)] == [
        pytest.approx(6 / 7),
        0.0,
    ]


def test_a_spurious_call_costs_a_part_and_not_all() -> None:
    actual = invocation(*tool_calls("search fetch ponder rank answer"))
    assert ToolTrajectoryF1().score(actual, FOUR).value == pytest.approx(8 / 9)


def test_repeated_names_are_aligned_one_to_one() -> None:
    actual, expected = invocation(*tool_calls("a b a")), reference_turn(*expected_calls("a a b"))
    assert ToolTrajectoryF1().score(actual, expected).value == pytest.approx(2 / 3)
    assert ToolTrajectoryF1(ordered=False).score(actual, expected).value == 1.0


@pytest.mark.parametrize(
    ("calls", "expected", "value"), [("", "", 1.0), ("", "a", 0.0), ("a", "", 0.0)]
)
def test_f1_of_empty_trajectories(calls: str, expected: str, value: float) -> None:
    assert (
        ToolTrajectoryF1()
        .score(invocation(*tool_calls(calls)), reference_turn(*expected_calls(expected)))
        .value
        == value
    )


def test_f1_defaults_and_what_it_does_without_reference() -> None:
    assert ToolTrajectoryF1() == ToolTrajectoryF1(match_mode="name_only", ordered=True)
    assert ToolTrajectoryF1().score(invocation(), None).reason == "no_reference"


# Vertex AI, "Evaluate Gen AI agents": the two rows of its data set

DEVICE = (
    (tool_call("set_device_info", device_id="device_3", updates={"status": "OFF"}),),
    reference_turn(
        expected_call("set_device_info", device_id="device_2", updates={"status": "OFF"})
    ),
)
TEMPERATURE = (
    (
        tool_call("get_user_preferences", user_id="user_z"),
        tool_call("set_temperature", location="Living Room", temperature=23),
    ),
    reference_turn(
        expected_call("get_user_preferences", user_id="user_y"),
        expected_call("set_temperature", location="Living Room", temperature=23),
    ),
)


@pytest.mark.parametrize(
    ("row", "value"),
    [(DEVICE, 0.0), (TEMPERATURE, 0.5)],
    ids=["wrong device", "wrong user, right temperature"],
)
def test_vertex_rows(row: tuple[tuple[ToolCall, ...], ReferenceTurn], value: float) -> None:
    calls, expected = row
    actual = invocation(*calls)
    binary = TrajectoryExactMatch(), TrajectoryInOrderMatch(), TrajectoryAnyOrderMatch()
    assert [scorer.score(actual, expected).value for scorer in binary] == [0.0, 0.0, 0.0]
    assert [
        scorer.score(actual, expected).value
        for scorer in (TrajectoryPrecision(), TrajectoryRecall())
    ] == [value, value]


def test_vertex_single_tool_use() -> None:
    actual = invocation(*TEMPERATURE[0])
    assert TrajectorySingleToolUse("set_temperature").score(actual, None).value == 1.0
    assert TrajectorySingleToolUse("tool_name").score(actual, None).value == 0.0


# "Evaluator Catalog & Scoring": its modes are strict, unordered (extra calls allowed) and
# subsequence

REFUND = reference_turn(
    *(ExpectedCall(name) for name in ("lookup_order", "check_refund_policy", "process_refund"))
)
GATHER = reference_turn(
    *(ExpectedCall(name) for name in ("search_products", "check_inventory", "get_pricing"))
)
OPTIONAL_STEPS = reference_turn(ExpectedCall("lookup_order"), ExpectedCall("process_refund"))


def test_strict_mode_is_the_exact_match() -> None:
    assert (
        TrajectoryExactMatch()
        .score(invocation(*tool_calls("lookup_order check_refund_policy process_refund")), REFUND)
        .value
        == 1.0
    )
    assert (
        TrajectoryExactMatch()
        .score(invocation(*tool_calls("lookup_order process_refund check_refund_policy")), REFUND)
        .value
        == 0.0
    )


def test_unordered_mode_is_the_any_order_match() -> None:
    assert (
        TrajectoryAnyOrderMatch()
        .score(invocation(*tool_calls("get_pricing search_products check_inventory")), GATHER)
        .value
        == 1.0
    )
    assert (
        TrajectoryAnyOrderMatch()
        .score(invocation(*tool_calls("get_pricing search_products")), GATHER)
        .value
        == 0.0
    )


def test_subsequence_mode_is_the_in_order_match() -> None:
    actual = invocation(*tool_calls("lookup_order check_refund_policy process_refund send_email"))
    assert TrajectoryInOrderMatch().score(actual, OPTIONAL_STEPS).value == 1.0

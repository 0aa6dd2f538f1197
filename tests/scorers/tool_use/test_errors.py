"""Failing tools: how many, and what came after."""

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.authoring.builders import invocation, tool_call, tool_calls
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.errors import ErrorRecovery, ToolErrorRate
from pathgauge.scorers.types import Score, ToolCall


def calls(written: str) -> list[ToolCall]:
    """Calls such as `a b!`, of which the second failed."""
    return [
        ToolCall(name.rstrip("!"), {}, error="boom" if name.endswith("!") else None)
        for name in written.split()
    ]


@pytest.mark.parametrize(
    ("written", "value", "line"),
    [
        ("a b c", 0.0, "0 of 3 tool calls failed"),
        ("a! b c a!", 0.5, "2 of 4 tool calls failed: a x2"),
        ("a!", 1.0, "1 of 1 tool call failed: a"),
    ],
)
def test_the_error_rate_is_the_share_of_failed_calls(written: str, value: float, line: str) -> None:
    score = ToolErrorRate().score(invocation(*calls(written)), None)
    assert (score.value, score.explanation) == (value, line)


def test_an_error_in_the_result_is_a_failure() -> None:
    actual = invocation(
        ToolCall("a", result={"error": "boom"}),
        ToolCall(" b ", result='{"error": "boom"}'),
        tool_call("c"),
    )
    expected = Score(
        2 / 3, None, "2 of 3 tool calls failed: a, b", {"failed": [[0, "a"], [1, "b"]]}
    )
    assert ToolErrorRate().score(actual, None) == expected


def test_without_calls_there_is_no_rate() -> None:
    assert ToolErrorRate().score(invocation(), None) == Score.not_evaluated(
        "not_applicable", "no tool calls"
    )
    assert (
        ToolErrorRate().score(invocation(flags=frozenset({"no_tool_spans"})), None).reason
        == "tools_not_recorded"
    )
    assert not ToolErrorRate.higher_is_better


@pytest.mark.parametrize(
    ("written", "same_tool", "any_tool"),
    [
        ("a! a", 1.0, 1.0),
        ("a! b", 0.0, 1.0),
        ("a! a! a", 1.0, 1.0),
        ("a! b a", 1.0, 1.0),
        ("a! b! b", 0.5, 1.0),
        ("a a!", 0.0, 0.0),
        ("a a! a!", 0.0, 0.0),
        ("a! a a!", 0.5, 0.5),
        ("a b", None, None),
        ("", None, None),
    ],
)
def test_recovery_is_a_success_after_the_failure(
    written: str, same_tool: float | None, any_tool: float | None
) -> None:
    values = [
        scorer.score(invocation(*calls(written)), None).value
        for scorer in (ErrorRecovery(), ErrorRecovery(any_tool=True))
    ]
    assert values == [same_tool, any_tool]


def test_calls_of_the_same_message_are_no_recovery() -> None:
    failed = ToolCall("a", error="boom", group=1)
    for group, value in ((1, 0.0), (2, 1.0), (None, 1.0)):
        assert (
            ErrorRecovery().score(invocation(failed, ToolCall("a", group=group)), None).value
            == value
        )
    assert (
        ErrorRecovery().score(invocation(ToolCall("a", error="boom"), ToolCall("a")), None).value
        == 1.0
    )


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([None, 1, 2, 3])), max_size=7))
def test_a_success_of_another_message_is_a_recovery_wherever_it_stands(
    made: list[tuple[bool, int | None]],
) -> None:
    """Calls of a sub-agent stand between those of one message of its caller."""
    calls = [ToolCall("a", error=None if good else "boom", group=group) for good, group in made]
    failures = [at for at, (good, _) in enumerate(made) if not good]
    recovered = [
        at
        for at in failures
        if any(good and (group is None or group != made[at][1]) for good, group in made[at + 1 :])
    ]
    value = ErrorRecovery().score(invocation(*calls), None).value
    assert value == (len(recovered) / len(failures) if failures else None)


def test_what_was_given_up_is_named() -> None:
    score = ErrorRecovery().score(invocation(*calls("a! b! c! b")), None)
    details = {"recovered": [[1, "b"]], "given_up": [[0, "a"], [2, "c"]]}
    assert score == Score(
        1 / 3, None, "recovered from 1 of 3 failed tool calls; given up a, c", details
    )
    whole = ErrorRecovery().score(invocation(*calls("a! a")), None)
    assert whole.explanation == "recovered from 1 of 1 failed tool call"


def test_without_failure_there_is_nothing_to_recover_from() -> None:
    assert ErrorRecovery().score(invocation(*tool_calls("a")), None) == Score.not_evaluated(
        "not_applicable", "no tool call failed"
    )
    lossy = invocation(*calls("a! a"), flags=frozenset({"dropped_spans"}))
    assert ErrorRecovery().score(lossy, None).reason == "tools_not_recorded"


@given(st.lists(st.sampled_from(["a", "b", "a!", "b!"]), max_size=8))
def test_any_recovery_of_the_same_tool_is_one_of_any_tool(written: list[str]) -> None:
    actual = invocation(*calls(" ".join(written)))
    same, other = (
        scorer.score(actual, None).value or 0.0
        for scorer in (ErrorRecovery(), ErrorRecovery(any_tool=True))
    )
    assert same <= other


def test_they_keep_the_contract() -> None:
    for scorer in (ToolErrorRate(), ErrorRecovery(), ErrorRecovery(any_tool=True)):
        check_scorer(scorer, [(invocation(*calls("a! b a")), None)])

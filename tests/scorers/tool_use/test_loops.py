"""Loops and redundant calls: what counts as the same call, thresholds, and what holds without
arguments.
"""

from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from pydantic import TypeAdapter, ValidationError

from pathgauge.scorers.authoring.builders import invocation, tool_call, tool_calls
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.loops import RedundantCalls, Run, ToolLoops, longest_run
from pathgauge.scorers.types import Flag, Score, Scorer, ToolCall
from support.examples import examples

SCORERS: list[Scorer] = [
    ToolLoops(),
    ToolLoops(2, 2),
    ToolLoops(suspicious=2, loop=3),
    RedundantCalls(),
]
ARGUMENTS = st.sampled_from([None, {}, {"x": 1}, {"x": 1.0}, {"x": 2}, "{", '{"x": 2}'])
CALLS = st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS), max_size=4)


def value(scorer: Scorer, letters: str) -> float | None:
    return scorer.score(invocation(*tool_calls(" ".join(letters))), None).value


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_the_contract_is_kept(scorer: Scorer) -> None:
    check_scorer(scorer)


@pytest.mark.parametrize(
    ("calls", "loops", "redundant"),
    [
        ("a", 1.0, 0.0),
        ("ab", 1.0, 0.0),
        ("aa", 1.0, 1 / 2),
        ("aba", 1.0, 1 / 3),
        ("aaa", 0.5, 2 / 3),
        ("ababa", 0.5, 3 / 5),
        ("aaaaa", 0.5, 4 / 5),
        ("aaaaaa", 0.0, 5 / 6),
        ("abababababab", 0.0, 10 / 12),
    ],
)
def test_the_value_follows_from_how_often_the_same_call_was_made(
    calls: str, loops: float, redundant: float
) -> None:
    assert [value(ToolLoops(), calls), value(RedundantCalls(), calls)] == pytest.approx(
        [loops, redundant]
    )


@pytest.mark.parametrize(("times", "expected"), [(1, 1.0), (2, 0.5), (3, 0.5), (4, 0.0)])
def test_the_thresholds_are_options(times: int, expected: float) -> None:
    assert value(ToolLoops(suspicious=2, loop=4), "a" * times) == expected


@pytest.mark.parametrize(
    "options", [{"suspicious": 1}, {"suspicious": 7}, {"loop": 2}, {"suspicious": -1, "loop": 0}]
)
def test_thresholds_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    message = f"found {options.get('suspicious', 3)} and {options.get('loop', 6)}, expected"
    with pytest.raises(ValueError, match=message):
        ToolLoops(**options)
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(ToolLoops).validate_python(options, extra="forbid")


def test_calls_are_the_same_when_name_and_arguments_are_equal_as_json() -> None:
    same = (tool_call("a", x=1), ToolCall(" a", '{"x": 1.0}'), ToolCall("a\n", '"{\\"x\\": 1}"'))
    different = (
        tool_call("a", x=1),
        tool_call("a", x=True),
        tool_call("b", x=1),
        tool_call("A", x=1),
        ToolCall("a", "x=1"),
        tool_call("a"),
    )
    assert RedundantCalls().score(invocation(*same), None).value == pytest.approx(2 / 3)
    assert RedundantCalls().score(invocation(*different), None).value == 0.0


def test_the_evidence_of_a_loop_is_its_calls_and_the_longest_run_of_equal_pieces() -> None:
    assert ToolLoops().score(
        invocation(*tool_calls("plan search fetch search fetch search fetch answer")), None
    ) == Score(
        0.5,
        None,
        "search was called 3 times with the same arguments",
        {
            "most": [1, 3, 5],
            "run": {"start": 1, "period": 2, "repeats": 3, "tools": ["search", "fetch"]},
        },
    )
    assert ToolLoops().score(invocation(*tool_calls("a b a")), None) == Score(
        1.0, None, "a was called 2 times with the same arguments", {"most": [0, 2], "run": None}
    )
    assert ToolLoops().score(invocation(*tool_calls("a b")), None) == Score(
        1.0, None, "no call was seen twice", {"most": [], "run": None}
    )


def test_the_evidence_of_redundant_calls_points_at_the_first_of_its_kind() -> None:
    assert RedundantCalls().score(invocation(*tool_calls("a b a b a c")), None) == Score(
        0.5,
        None,
        "3 of 6 calls repeat an earlier one: a x2, b",
        {"repeated": [[2, 0, "a"], [3, 1, "b"], [4, 0, "a"]], "calls": 6},
    )
    assert RedundantCalls().score(invocation(*tool_calls("a b")), None) == Score(
        0.0, None, "0 of 2 calls repeat an earlier one", {"repeated": [], "calls": 2}
    )


def test_explanations_are_one_line_whatever_the_tools_are_called() -> None:
    calls = tool_call("a\nb"), tool_call("a\nb")
    assert (
        ToolLoops().score(invocation(*calls), None).explanation
        == "a b was called 2 times with the same arguments"
    )
    assert ToolLoops().score(invocation(*calls, ToolCall("a\nb")), None).explanation == (
        "arguments not recorded; without them a b was called 2 times with the same arguments"
    )


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_without_calls_there_is_nothing_to_judge(scorer: Scorer) -> None:
    assert scorer.score(invocation(), None) == Score(None, "not_applicable", "no tool was called")


@pytest.mark.parametrize("flag", ["no_tool_spans", "dropped_spans"])
def test_calls_that_may_be_missing_leave_only_a_certain_loop(flag: Flag) -> None:
    few, many = (invocation(*tool_calls("a " * times), flags=frozenset({flag})) for times in (5, 6))
    assert ToolLoops().score(few, None).reason == "tools_not_recorded"
    assert ToolLoops().score(many, None).value == 0.0
    assert RedundantCalls().score(many, None).reason == "tools_not_recorded"
    assert (
        ToolLoops().score(invocation(flags=frozenset({flag})), None).reason == "tools_not_recorded"
    )
    assert (
        RedundantCalls().score(invocation(flags=frozenset({flag})), None).reason
        == "tools_not_recorded"
    )


def recordings(calls: list[ToolCall]) -> list[tuple[ToolCall, ...]]:
    """All ways to give arguments to the calls whose arguments were not recorded; the last ones are
    equal to no others.
    """
    ways: list[tuple[ToolCall, ...]] = [()]
    for place, call in enumerate(calls):
        known: list[Any] = (
            [{}, {"x": 1}, {"x": 2}, "{", {"y": 0}, {"z": place}]
            if call.arguments is None
            else [call.arguments]
        )
        ways = [(*way, ToolCall(call.name, arguments)) for way in ways for arguments in known]
    return ways


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
@settings(deadline=None, max_examples=examples(60))
@given(CALLS)
def test_a_value_is_given_exactly_when_no_recording_of_the_arguments_would_change_it(
    scorer: Scorer, calls: list[ToolCall]
) -> None:
    possible = {scorer.score(invocation(*way), None).value for way in recordings(calls)}
    result = scorer.score(invocation(*calls), None)
    assert (result.reason == "args_not_recorded") == (len(possible) > 1)
    assert result.reason == "args_not_recorded" or {result.value} == possible


@given(st.lists(st.sampled_from("abc"), max_size=12))
@example(list("acacbcbc"))
def test_the_longest_run_is_the_best_of_all_runs(letters: list[str]) -> None:
    runs = [
        Run(start, period, repeats)
        for period in range(1, len(letters))
        for start in range(len(letters))
        for repeats in range(2, len(letters) // period + 1)
        if letters[start : start + period] * repeats == letters[start : start + period * repeats]
    ]
    best = max(
        runs, key=lambda run: (run.period * run.repeats, -run.period, -run.start), default=None
    )
    assert longest_run(letters) == best


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), st.sampled_from("abcd"))
def test_one_more_call_makes_a_loop_never_less_likely(letters: list[str], another: str) -> None:
    before, after = (
        value(ToolLoops(), "".join(letters)),
        value(ToolLoops(), "".join([*letters, another])),
    )
    assert before is not None
    assert after is not None
    assert after <= before


def test_two_thousand_calls_are_scored_and_one_more_is_too_long() -> None:
    for scorer in SCORERS:
        assert scorer.score(invocation(*tool_calls("a " * 2000)), None).value in {0.0, 1999 / 2000}
        result = scorer.score(invocation(*tool_calls("a " * 2001)), None)
        assert (result.reason, result.explanation) == (
            "too_long",
            "2001 calls; at most 2000 are compared",
        )


def test_arguments_nested_too_deep_are_too_long() -> None:
    nested: Any = 1
    for _ in range(5000):
        nested = [nested]
    for scorer in SCORERS:
        assert scorer.score(invocation(tool_call("a", x=nested)), None).reason == "too_long"

"""The alignment is a largest one: checked against all alignments there are, for every match mode."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers import Alignment, ExpectedCall, MatchMode, ToolCall, TooLongError, align
from scorers.equality import canonical
from scorers.measures import complete, exact, f1, precision, recall
from scorers.testing import expected_call, expected_calls, tool_call, tool_calls

MODES: tuple[MatchMode, ...] = get_args(MatchMode)
Calls = list[ToolCall]
Expected = list[ExpectedCall]

VALUES = st.sampled_from([1, 1.0, True, "1", [1], None])
ARGUMENTS = st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2)
RECORDED = st.builds(ToolCall, st.sampled_from("abc"), ARGUMENTS)
ACTUAL = st.lists(RECORDED, max_size=5)
SPARSE = st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS | st.none()), max_size=4)
LITERAL = st.lists(st.builds(ExpectedCall, st.sampled_from("abc"), ARGUMENTS), max_size=5)
EXPECTED = st.lists(st.builds(ExpectedCall, st.sampled_from("abc"), ARGUMENTS | st.none()), max_size=5)


def as_dict(call: ToolCall) -> dict[str, Any]:
    assert isinstance(call.arguments, dict)
    return call.arguments


def accepts(mode: MatchMode, actual: ToolCall, expected: ExpectedCall) -> bool:
    """The match modes as the documentation words them; arguments that were not recorded answer no call that looks at them."""
    if actual.name != expected.name:
        return False
    if mode == "name_only" or expected.arguments is None:
        return True
    if not isinstance(actual.arguments, dict):
        return mode == "name_and_required_args" and not expected.arguments
    made: dict[str, Any] = {key: canonical(value) for key, value in actual.arguments.items()}
    asked: dict[str, Any] = {key: canonical(value) for key, value in expected.arguments.items()}
    return made == asked if mode == "name_and_args" else made | asked == made


def matchings(actual: Calls, expected: Expected, mode: MatchMode, ordered: bool) -> Iterator[int]:
    """The size of every one-to-one matching: each actual call goes to an expected one or to nobody."""
    nobody = [None] * len(actual)
    for choice in set(permutations([*range(len(expected)), *nobody], len(actual))):
        pairs = [(i, j) for i, j in enumerate(choice) if j is not None]
        partners = [j for _, j in pairs]
        if (not ordered or partners == sorted(partners)) and all(accepts(mode, actual[i], expected[j]) for i, j in pairs):
            yield len(pairs)


def largest(actual: Calls, expected: Expected, mode: MatchMode, ordered: bool) -> int:
    """The same by recursion, which is quick enough for five calls against five."""
    if not actual:
        return 0
    head, rest = actual[0], actual[1:]
    best = largest(rest, expected, mode, ordered)
    for j, call in enumerate(expected):
        if accepts(mode, head, call):
            left = expected[j + 1 :] if ordered else expected[:j] + expected[j + 1 :]
            best = max(best, 1 + largest(rest, left, mode, ordered))
    return best


def check_valid(alignment: Alignment, actual: Calls, expected: Expected, mode: MatchMode, ordered: bool) -> None:
    """The pairs are allowed, use each call once, do not cross if ordered, and what they leave is missing or unexpected."""
    assert all(accepts(mode, actual[i], expected[j]) for i, j in alignment.pairs)
    lefts, rights = [i for i, _ in alignment.pairs], [j for _, j in alignment.pairs]
    assert lefts == sorted(set(lefts))
    assert sorted(rights) == sorted(set(rights))
    assert not ordered or rights == sorted(rights)
    assert list(alignment.unexpected) == sorted(set(range(len(actual))) - set(lefts))
    assert list(alignment.missing) == sorted(set(range(len(expected))) - set(rights))
    assert (alignment.matched, alignment.actual, alignment.expected) == (len(lefts), len(actual), len(expected))


@settings(deadline=None, max_examples=60)
@given(st.lists(RECORDED, max_size=3), st.lists(st.builds(ExpectedCall, st.sampled_from("ab"), ARGUMENTS), max_size=3))
def test_the_recursion_of_these_tests_finds_the_largest_of_all_matchings(actual: Calls, expected: Expected) -> None:
    for mode in MODES:
        for ordered in (True, False):
            assert largest(actual, expected, mode, ordered) == max(matchings(actual, expected, mode, ordered))


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=250)
@given(actual=ACTUAL | SPARSE, expected=EXPECTED)
def test_no_matching_is_larger(mode: MatchMode, ordered: bool, actual: Calls, expected: Expected) -> None:
    alignment = align(actual, expected, mode, ordered=ordered)
    check_valid(alignment, actual, expected, mode, ordered)
    assert alignment.matched == largest(actual, expected, mode, ordered)


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=150)
@given(actual=SPARSE, expected=EXPECTED)
def test_at_most_is_reached_by_the_luckiest_arguments(mode: MatchMode, ordered: bool, actual: Calls, expected: Expected) -> None:
    wished = align(actual, expected, mode, ordered=ordered).at_most
    assert wished == max(align(calls, expected, mode, ordered=ordered).matched for calls in filled(actual, expected))


def filled(actual: Calls, expected: Expected) -> Iterator[Calls]:
    """All ways to give arguments of the reference to the calls whose arguments were not recorded."""
    if not actual:
        yield []
        return
    head, rest = actual[0], actual[1:]
    given = [call.arguments for call in expected if call.name == head.name and call.arguments is not None] or [{}]
    for arguments in given if head.arguments is None else [head.arguments]:
        for calls in filled(rest, expected):
            yield [ToolCall(head.name, arguments), *calls]


@settings(deadline=None, max_examples=200)
@given(ACTUAL, EXPECTED)
def test_more_freedom_never_matches_less(actual: Calls, expected: Expected) -> None:
    matched = {(mode, ordered): align(actual, expected, mode, ordered=ordered).matched for mode in MODES for ordered in (True, False)}
    for ordered in (True, False):
        assert matched["name_and_args", ordered] <= matched["name_and_required_args", ordered] <= matched["name_only", ordered]
    for mode in MODES:
        assert 0 <= matched[mode, True] <= matched[mode, False] <= min(len(actual), len(expected))


@settings(deadline=None)
@given(ACTUAL, LITERAL)
def test_equality_modes_do_not_care_which_side_is_which(actual: Calls, expected: Expected) -> None:
    swapped = [ToolCall(call.name, call.arguments) for call in expected], [expected_call(call.name, **as_dict(call)) for call in actual]
    for mode in MODES[:2]:
        for ordered in (True, False):
            one, other = align(actual, expected, mode, ordered=ordered), align(*swapped, mode, ordered=ordered)
            assert (one.matched, one.actual, one.expected) == (other.matched, other.expected, other.actual)


@settings(deadline=None, max_examples=200)
@given(ACTUAL, EXPECTED, st.sampled_from(MODES))
def test_one_alignment_answers_every_measure(actual: Calls, expected: Expected, mode: MatchMode) -> None:
    ordered, unordered = (align(actual, expected, mode, ordered=way) for way in (True, False))
    counts, loose = (ordered.matched, len(actual), len(expected)), (unordered.matched, len(actual), len(expected))
    assert (f1(*counts) == 1) == (exact(*counts) == 1)
    if expected:
        assert (recall(*counts) == 1) == (complete(*counts) == 1)
        assert (recall(*loose) == 1) == (complete(*loose) == 1)
    both = precision(*counts), recall(*counts)
    if actual and expected and ordered.matched and both[1] is not None:
        assert f1(*counts) == pytest.approx(2 * both[0] * both[1] / (both[0] + both[1]))


@settings(deadline=None)
@given(ACTUAL, EXPECTED, st.sampled_from(MODES), st.booleans(), st.integers(0, 5))
def test_one_more_call_that_nobody_expects_lowers_f1(actual: Calls, expected: Expected, mode: MatchMode, ordered: bool, place: int) -> None:
    more = [*actual[:place], tool_call("stranger"), *actual[place:]]
    before, after = (align(calls, expected, mode, ordered=ordered) for calls in (actual, more))
    assert after.matched == before.matched
    if before.matched:
        assert f1(after.matched, after.actual, after.expected) < f1(before.matched, before.actual, before.expected)


def test_the_indexes_say_which_call_answers_which() -> None:
    assert align(tool_calls("b a x a"), expected_calls("a b a"), ordered=True) == Alignment(((0, 1), (1, 2)), (0,), (2, 3), 2)
    assert align(tool_calls("b a x a"), expected_calls("a b a"), ordered=False) == Alignment(((0, 1), (1, 0), (3, 2)), (), (2,), 3)


def test_a_literal_call_is_not_taken_by_an_expected_call_that_accepts_any() -> None:
    actual, expected = [tool_call("a", x=1), tool_call("a", x=2)], [ExpectedCall("a"), expected_call("a", x=1)]
    assert align(actual, expected, "name_and_args", ordered=False).pairs == ((0, 1), (1, 0))


def test_two_thousand_calls_are_aligned() -> None:
    names = ["search", "fetch", "rank", "answer"] * 500
    actual = [tool_call(name, step=step) for step, name in enumerate(names)]
    expected = [expected_call(name, step=step) for step, name in enumerate(names)]
    for mode in MODES:
        for ordered in (True, False):
            assert align(actual, expected, mode, ordered=ordered).matched == 2000
    assert align(actual[::-1], expected, "name_and_args", ordered=True).matched == 1
    assert align(actual[::-1], expected, "name_and_args", ordered=False).matched == 2000


def test_more_than_two_thousand_calls_are_too_long() -> None:
    with pytest.raises(TooLongError, match="2001 calls against 0 expected ones"):
        align(tool_calls("a " * 2001), [])
    with pytest.raises(TooLongError, match="0 calls against 2001 expected ones"):
        align([], expected_calls("a " * 2001))


def chain(length: int) -> tuple[Calls, Expected]:
    """Call i has the arguments k(i) and k(i+1); the reference asks for one k each, last first, so that greed goes wrong."""
    actual = [tool_call("a", **{f"k{i}": 1, f"k{i + 1}": 1}) for i in range(length)]
    return actual, [expected_call("a", **{f"k{j}": 1}) for j in reversed(range(length))]


def test_a_chain_in_which_greed_goes_wrong_is_searched() -> None:
    actual, expected = chain(300)
    assert align(actual, expected, "name_and_required_args", ordered=False).matched == 300


def test_a_chain_of_1200_required_args_calls_is_too_long_without_order() -> None:
    actual, expected = chain(1200)
    with pytest.raises(TooLongError, match="1200 calls of one tool against 1200 expected ones"):
        align(actual, expected, "name_and_required_args", ordered=False)
    assert align(actual, expected[::-1], "name_and_required_args", ordered=True).matched == 1200


def test_a_dense_block_is_too_long_by_its_edges() -> None:
    actual = [*[tool_call("a", x=1, y=1)] * 399, tool_call("a", x=1)]
    expected = [expected_call("a", x=1), *[expected_call("a", y=1)] * 399]
    with pytest.raises(TooLongError, match="159601 possible pairs"):
        align(actual, expected, "name_and_required_args", ordered=False)
    assert align(actual[200:], expected[:200], "name_and_required_args", ordered=False).matched == 200


def test_block_limits_do_not_apply_where_no_search_is_needed() -> None:
    actual = [tool_call("a", x=1, i=i) for i in range(2000)]
    assert align(actual, [expected_call("a", x=1)] * 2000, "name_and_required_args", ordered=False).matched == 2000
    strangers, ready = [tool_call("a")] * 500, [tool_call("a", x=1)] * 450
    assert align(strangers + ready, [expected_call("a", x=1)] * 460, "name_and_required_args", ordered=False).matched == 450

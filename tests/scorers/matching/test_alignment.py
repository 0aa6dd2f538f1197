"""The alignment is a best one: checked against all alignments there are, for every match mode, with
and without order.

Expected calls may be optional, may share groups, and may hold matchers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge import Alignment, ExpectedCall, MatchMode, ToolCall, TooLongError, align
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.matching.alignment import Counts
from pathgauge.scorers.matching.bipartite import largest_matching
from pathgauge.scorers.matching.matchers import Anything, Ignored, OneOf, matches
from pathgauge.scorers.matching.measures import complete, contained, exact, f1, precision, recall
from support.examples import examples

MODES: tuple[MatchMode, ...] = get_args(MatchMode)
Calls = list[ToolCall]
Expected = list[ExpectedCall]

VALUES = st.sampled_from([1, 1.0, True, "1", [1], None])
MATCHERS = st.sampled_from([Anything(), Ignored(), OneOf([1, "1"]), [OneOf([1, 2])]])
ARGUMENTS = st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2)
OPEN = st.dictionaries(st.sampled_from("xy"), VALUES | MATCHERS, max_size=2)
RECORDED = st.builds(ToolCall, st.sampled_from("abc"), ARGUMENTS)
ACTUAL = st.lists(RECORDED, max_size=5)
SPARSE = st.lists(st.builds(ToolCall, st.sampled_from("ab"), ARGUMENTS | st.none()), max_size=4)
LITERAL = st.lists(st.builds(ExpectedCall, st.sampled_from("abc"), ARGUMENTS), max_size=5)
PLAIN = st.lists(st.builds(ExpectedCall, st.sampled_from("abc"), OPEN | st.none()), max_size=5)
GROUPS = st.none() | st.integers(1, 2)
LOOSE = st.lists(
    st.builds(
        ExpectedCall, st.sampled_from("ab"), ARGUMENTS | OPEN | st.none(), st.booleans(), GROUPS
    ),
    max_size=5,
)
EXPECTED = PLAIN | LOOSE


def as_dict(call: ToolCall) -> dict[str, Any]:
    assert isinstance(call.arguments, dict)
    return call.arguments


def accepts(mode: MatchMode, actual: ToolCall, expected: ExpectedCall) -> bool:
    """The match modes as the documentation words them; arguments that were not recorded answer no
    call that looks at them.
    """
    if actual.name != expected.name:
        return False
    if mode == "name_only" or expected.arguments is None:
        return True
    required = mode == "name_and_required_args"
    asked = {
        key: value for key, value in expected.arguments.items() if not isinstance(value, Ignored)
    }
    if not isinstance(actual.arguments, dict):
        return required and not asked
    made = {
        key: value
        for key, value in actual.arguments.items()
        if not isinstance(expected.arguments.get(key), Ignored)
    }
    return all(key in made and matches(value, made[key]) for key, value in asked.items()) and (
        required or len(made) == len(asked)
    )


def places(groups: Sequence[int | None]) -> list[int]:
    """The place of each call in the order; neighbours that share a group share a place."""
    found: list[int] = []
    for index, group in enumerate(groups):
        together = index > 0 and group is not None and group == groups[index - 1]
        found.append(found[-1] if together else index)
    return found


def matchings(
    actual: Calls, expected: Expected, mode: MatchMode, ordered: bool
) -> Iterator[tuple[int, int]]:
    """For every one-to-one matching, the numbers of required calls and of all calls in it."""
    nobody = [None] * len(actual)
    place = places([call.group for call in expected])
    for choice in set(permutations([*range(len(expected)), *nobody], len(actual))):
        pairs = [(i, j) for i, j in enumerate(choice) if j is not None]
        taken = [place[j] for _, j in pairs]
        if (not ordered or taken == sorted(taken)) and all(
            accepts(mode, actual[i], expected[j]) for i, j in pairs
        ):
            yield sum(not expected[j].optional for _, j in pairs), len(pairs)


def best(actual: Calls, expected: Expected, mode: MatchMode, ordered: bool) -> tuple[int, int]:
    """The best of these by recursion, which is quick enough for five calls against five."""
    place = places([call.group for call in expected])
    partners = [
        [j for j, other in enumerate(expected) if accepts(mode, call, other)] for call in actual
    ]

    def rest(i: int, used: frozenset[int], floor: int) -> tuple[int, int]:
        if i == len(actual):
            return 0, 0
        found = rest(i + 1, used, floor)
        for j in partners[i]:
            if j not in used and (not ordered or place[j] >= floor):
                required, matched = rest(i + 1, used | {j}, place[j])
                found = max(found, (required + (not expected[j].optional), matched + 1))
        return found

    return rest(0, frozenset(), 0)


def reached(alignment: Alignment, expected: Expected) -> tuple[int, int]:
    return sum(not expected[j].optional for _, j in alignment.pairs), len(alignment.pairs)


def check_valid(
    alignment: Alignment, actual: Calls, expected: Expected, mode: MatchMode, ordered: bool
) -> None:
    """The pairs are allowed, use each call once, do not cross if ordered, and what they leave is
    missing or unexpected.
    """
    assert all(accepts(mode, actual[i], expected[j]) for i, j in alignment.pairs)
    lefts, rights = [i for i, _ in alignment.pairs], [j for _, j in alignment.pairs]
    place = places([call.group for call in expected])
    assert lefts == sorted(set(lefts))
    assert len(rights) == len(set(rights))
    assert not ordered or [place[j] for j in rights] == sorted(place[j] for j in rights)
    assert list(alignment.unexpected) == sorted(set(range(len(actual))) - set(lefts))
    assert list(alignment.missing) == [
        j for j, call in enumerate(expected) if j not in rights and not call.optional
    ]
    assert alignment.counts == Counts(len(lefts), len(actual), len(lefts) + len(alignment.missing))


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(RECORDED, max_size=3),
    st.lists(
        st.builds(ExpectedCall, st.sampled_from("ab"), OPEN, st.booleans(), GROUPS), max_size=3
    ),
)
def test_the_recursion_of_these_tests_finds_the_best_of_all_matchings(
    actual: Calls, expected: Expected
) -> None:
    for mode in MODES:
        for ordered in (True, False):
            assert best(actual, expected, mode, ordered) == max(
                matchings(actual, expected, mode, ordered)
            )


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=examples(250))
@given(actual=ACTUAL | SPARSE, expected=EXPECTED)
def test_no_matching_is_better(
    mode: MatchMode, ordered: bool, actual: Calls, expected: Expected
) -> None:
    alignment = align(actual, expected, mode, ordered=ordered)
    check_valid(alignment, actual, expected, mode, ordered)
    assert reached(alignment, expected) == best(actual, expected, mode, ordered)


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=examples(150))
@given(
    actual=SPARSE,
    expected=LITERAL
    | st.lists(
        st.builds(ExpectedCall, st.sampled_from("ab"), ARGUMENTS, st.booleans(), GROUPS), max_size=4
    ),
)
def test_what_is_hoped_for_is_reached_by_the_luckiest_arguments(
    mode: MatchMode, ordered: bool, actual: Calls, expected: Expected
) -> None:
    best_case = align(actual, expected, mode, ordered=ordered).best_case
    lucky = [align(calls, expected, mode, ordered=ordered) for calls in filled(actual, expected)]
    assert best_case == max(lucky, key=lambda alignment: reached(alignment, expected)).counts


def filled(actual: Calls, expected: Expected) -> Iterator[Calls]:
    """All ways to fill in unrecorded arguments with arguments of the reference."""
    if not actual:
        yield []
        return
    head, rest = actual[0], actual[1:]
    given = [
        call.arguments for call in expected if call.name == head.name and call.arguments is not None
    ] or [{}]
    for arguments in given if head.arguments is None else [head.arguments]:
        for calls in filled(rest, expected):
            yield [ToolCall(head.name, arguments), *calls]


@settings(deadline=None, max_examples=examples(200))
@given(ACTUAL, EXPECTED)
def test_more_freedom_never_matches_less(actual: Calls, expected: Expected) -> None:
    found = {
        (mode, ordered): reached(align(actual, expected, mode, ordered=ordered), expected)
        for mode in MODES
        for ordered in (True, False)
    }
    for ordered in (True, False):
        assert (
            found["name_and_args", ordered]
            <= found["name_and_required_args", ordered]
            <= found["name_only", ordered]
        )
    for mode in MODES:
        assert (0, 0) <= found[mode, True] <= found[mode, False]
        assert found[mode, False][1] <= min(len(actual), len(expected))


@settings(deadline=None)
@given(ACTUAL, LITERAL)
def test_equality_modes_do_not_care_which_side_is_which(actual: Calls, expected: Expected) -> None:
    swapped = (
        [ToolCall(call.name, call.arguments) for call in expected],
        [expected_call(call.name, **as_dict(call)) for call in actual],
    )
    for mode in MODES[:2]:
        for ordered in (True, False):
            one, other = (
                align(actual, expected, mode, ordered=ordered).counts,
                align(*swapped, mode, ordered=ordered).counts,
            )
            assert one == Counts(other.matched, other.expected, other.actual)


@settings(deadline=None, max_examples=examples(200))
@given(ACTUAL, EXPECTED, st.sampled_from(MODES), st.booleans())
def test_one_alignment_answers_every_measure(
    actual: Calls, expected: Expected, mode: MatchMode, ordered: bool
) -> None:
    alignment = align(actual, expected, mode, ordered=ordered)
    counts = alignment.counts
    assert (
        (f1(*counts) == 1)
        == (exact(*counts) == 1)
        == (not alignment.missing and not alignment.unexpected)
    )
    assert (complete(*counts) == 1) == (not alignment.missing)
    assert (
        (contained(*counts) == 1)
        == (precision(*counts) == 1 or not actual)
        == (not alignment.unexpected)
    )
    share = recall(*counts)
    if counts.expected:
        assert (share == 1) == (complete(*counts) == 1)
    if counts.matched and share is not None:
        assert f1(*counts) == pytest.approx(
            2 * precision(*counts) * share / (precision(*counts) + share)
        )


@settings(deadline=None)
@given(ACTUAL, EXPECTED, st.sampled_from(MODES), st.booleans(), st.integers(0, 5))
def test_one_more_call_that_nobody_expects_lowers_f1(
    actual: Calls, expected: Expected, mode: MatchMode, ordered: bool, place: int
) -> None:
    more = [*actual[:place], tool_call("stranger"), *actual[place:]]
    before, after = (
        align(calls, expected, mode, ordered=ordered).counts for calls in (actual, more)
    )
    assert after == before._replace(actual=before.actual + 1)
    if before.matched:
        assert f1(*after) < f1(*before)


@settings(deadline=None)
@given(ACTUAL, EXPECTED, st.sampled_from(MODES), st.booleans(), st.integers(0, 5))
def test_an_optional_call_that_nobody_makes_changes_nothing(
    actual: Calls, expected: Expected, mode: MatchMode, ordered: bool, place: int
) -> None:
    apart = [
        *expected[:place],
        *(replace(call, group=call.group and -call.group) for call in expected[place:]),
    ]
    more = [*expected[:place], ExpectedCall("stranger", optional=True), *expected[place:]]
    assert (
        align(actual, more, mode, ordered=ordered).counts
        == align(actual, apart, mode, ordered=ordered).counts
    )


def test_the_indexes_say_which_call_answers_which() -> None:
    ordered, unordered = (
        align(tool_calls("b a x a"), expected_calls("a b a"), ordered=way) for way in (True, False)
    )
    assert ordered == Alignment(((0, 1), (1, 2)), (0,), (2, 3), Counts(2, 4, 3), Counts(2, 4, 3))
    assert unordered == Alignment(
        ((0, 1), (1, 0), (3, 2)), (), (2,), Counts(3, 4, 3), Counts(3, 4, 3)
    )


def test_a_literal_call_is_not_taken_by_an_expected_call_that_accepts_any() -> None:
    expected = [ExpectedCall("a"), expected_call("a", x=1)]
    assert align(
        [tool_call("a", x=1), tool_call("a", x=2)], expected, "name_and_args", ordered=False
    ).pairs == ((0, 1), (1, 0))
    assert align([tool_call("a", x=1)], expected, "name_and_args", ordered=False).pairs == ((0, 1),)


def test_a_call_that_only_one_matcher_accepts_is_left_to_it() -> None:
    actual = [tool_call("a", x=1), tool_call("a", x=2)]
    expected = [expected_call("a", x=OneOf([1, 2])), expected_call("a", x=OneOf([1]))]
    for mode in MODES:
        assert len(align(actual, expected, mode, ordered=False).pairs) == 2
        assert len(align(actual[::-1], expected, mode, ordered=False).pairs) == 2


def test_two_thousand_calls_are_aligned() -> None:
    names = ["search", "fetch", "rank", "answer"] * 500
    actual = [tool_call(name, step=step) for step, name in enumerate(names)]
    expected = [expected_call(name, step=step) for step, name in enumerate(names)]
    for mode in MODES:
        for ordered in (True, False):
            assert align(actual, expected, mode, ordered=ordered).counts.matched == 2000
    assert align(actual[::-1], expected, "name_and_args", ordered=True).counts.matched == 1
    assert align(actual[::-1], expected, "name_and_args", ordered=False).counts.matched == 2000


def test_more_than_two_thousand_calls_are_too_long() -> None:
    with pytest.raises(TooLongError, match="2001 calls against 0 expected ones"):
        align(tool_calls("a " * 2001), [])
    with pytest.raises(TooLongError, match="0 calls against 2001 expected ones"):
        align([], expected_calls("a " * 2001))


def test_a_chain_in_which_greed_goes_wrong_is_searched_whatever_its_length() -> None:
    """Call i has the arguments k(i) and k(i+1); the reference asks for one k each, last first."""
    actual = [tool_call("a", **{f"k{i}": 1, f"k{i + 1}": 1}) for i in range(1200)]
    expected = [expected_call("a", **{f"k{j}": 1}) for j in reversed(range(1200))]
    assert align(actual, expected, "name_and_required_args", ordered=False).counts.matched == 1200
    assert (
        align(actual, expected[::-1], "name_and_required_args", ordered=True).counts.matched == 1200
    )


def test_two_thousand_calls_that_all_accept_each_other_are_paired() -> None:
    actual = [tool_call("a", x=1, i=i) for i in range(2000)]
    assert (
        align(
            actual, [expected_call("a", x=1)] * 2000, "name_and_required_args", ordered=False
        ).counts.matched
        == 2000
    )
    assert (
        align(
            actual, [expected_call("a", x=1)] * 1000, "name_and_required_args", ordered=False
        ).counts.matched
        == 1000
    )


@pytest.mark.slow
def test_a_search_that_goes_on_and_on_is_too_long() -> None:
    assert len(largest_matching({i: (1 << (900 - i)) - 1 for i in range(900)})) == 900
    with pytest.raises(TooLongError, match="too many ways to pair 2000 calls in any order"):
        largest_matching({i: (1 << (2000 - i)) - 1 for i in range(2000)})


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.integers(0, 63), max_size=6), st.integers(0, 63), st.integers(0, 63))
def test_as_many_pairs_as_possible_are_vital_and_then_as_many_as_possible_are_pairs(
    masks: list[int], wanted: int, first: int
) -> None:
    everything = dict(enumerate(masks))
    preferred = {i: mask & wanted for i, mask in everything.items()}
    pairs = largest_matching(everything, preferred, first=first)
    assert all(masks[i] >> j & 1 for i, j in pairs.items())
    assert len(set(pairs.values())) == len(pairs) == len(largest_matching(everything))
    assert sum(wanted >> j & 1 for j in pairs.values()) == len(largest_matching(preferred))

"""Groups of expected calls, optional calls and the calls of one message: checked against all
matchings there are.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge import ExpectedCall, ToolCall, TooLongError, align
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.matching.alignment import Alignment, Counts
from pathgauge.scorers.matching.comparison import IN_ORDER, RULES, Calls, Comparison, Order
from pathgauge.scorers.matching.partial_order import block_pairs, transposed
from pathgauge.scorers.matching.prepared_reference import PreparedReference, blocks
from support.examples import examples

SIDE = 4
MASKS = st.lists(st.integers(0, (1 << SIDE) - 1), max_size=SIDE)
WANTED = st.integers(0, (1 << SIDE) - 1) | st.just((1 << SIDE) - 1)
PLACES = st.lists(st.integers(0, 3), min_size=SIDE, max_size=SIDE).map(sorted)


def best(
    masks: Sequence[int], wanted: int, left: Sequence[int], right: Sequence[int]
) -> tuple[int, int]:
    """How many pairs can be wanted, and how many there can then be, if pairs never cross from one
    place to another.
    """

    def rest(i: int, pairs: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        if i == len(masks):
            return sum(wanted >> j & 1 for _, j in pairs), len(pairs)
        found = rest(i + 1, pairs)
        for j in range(SIDE):
            crossing = any(
                other == j or (left[before] < left[i] and right[other] > right[j])
                for before, other in pairs
            )
            if masks[i] >> j & 1 and not crossing:
                found = max(found, rest(i + 1, (*pairs, (i, j))))
        return found

    return rest(0, ())


def check_pairs(
    pairs: Sequence[tuple[int, int]],
    masks: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
) -> None:
    assert all(masks[i] >> j & 1 for i, j in pairs)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert not [1 for i, j in pairs for k, m in pairs if left[i] < left[k] and right[j] > right[m]]


@settings(deadline=None, max_examples=examples(300))
@given(MASKS, WANTED, PLACES)
def test_no_pairs_with_blocks_of_expected_calls_are_better(
    masks: list[int], wanted: int, places: list[int]
) -> None:
    pairs = block_pairs(masks, [mask & wanted for mask in masks], blocks(places))
    check_pairs(pairs, masks, range(SIDE), places)
    assert (sum(wanted >> j & 1 for _, j in pairs), len(pairs)) == best(
        masks, wanted, range(SIDE), places
    )


@settings(deadline=None, max_examples=examples(300))
@given(MASKS, WANTED, PLACES)
def test_no_pairs_with_blocks_of_actual_calls_are_better(
    masks: list[int], wanted: int, places: list[int]
) -> None:
    columns = transposed(masks, SIDE)
    preferred = [column if wanted >> j & 1 else 0 for j, column in enumerate(columns)]
    pairs = sorted((i, j) for j, i in block_pairs(columns, preferred, blocks(places)))
    check_pairs(pairs, masks, places, range(SIDE))
    assert (sum(wanted >> j & 1 for _, j in pairs), len(pairs)) == best(
        masks, wanted, places, range(SIDE)
    )


def test_neighbours_of_one_group_are_one_block() -> None:
    assert blocks([None, None, 1, 1, 2, None, 2, 1]) == [
        0b1,
        0b10,
        0b1100,
        0b10000,
        0b100000,
        0b1000000,
        0b10000000,
    ]
    assert blocks([]) == []


def grouped(names: str) -> tuple[ExpectedCall, ...]:
    """Expected calls as letters, those in brackets in a group, those before a question mark
    optional: `a (b c) d?`.
    """
    calls: list[ExpectedCall] = []
    for number, part in enumerate(names.split("(")):
        inside, _, outside = part.rpartition(")")
        for words, group in ((inside, number), (outside, None)):
            calls += [
                ExpectedCall(word.rstrip("?"), optional=word.endswith("?"), group=group)
                for word in words.split()
            ]
    return tuple(calls)


def messages(names: str) -> tuple[ToolCall, ...]:
    """Calls as letters, those in brackets asked for by one message: `a (b c)`."""
    return tuple(ToolCall(call.name, {}, group=call.group) for call in grouped(names))


def test_the_words_of_these_tests_mean_what_they_say() -> None:
    assert grouped("a (b c?) d (e)") == (
        ExpectedCall("a"),
        ExpectedCall("b", group=1),
        ExpectedCall("c", optional=True, group=1),
        ExpectedCall("d"),
        ExpectedCall("e", group=2),
    )


@pytest.mark.parametrize(
    ("actual", "expected", "matched", "missing"),
    [
        ("b a c", "(a b) c", 3, ""),
        ("c b a", "(a b) c", 2, "c"),
        ("c a b", "c (a b)", 3, ""),
        ("a c b", "(a b) c", 2, "b"),
        ("b a d c", "(a b) (c d)", 4, ""),
        ("b c a d", "(a b) (c d)", 3, "a"),
        ("b c a d", "(a b c d)", 4, ""),
        ("b a", "(a) (b)", 1, "b"),
        ("a x c", "a b? c", 2, ""),
        ("a b c", "a b? c", 3, ""),
        ("a c b", "a b? c", 2, ""),
        ("b b b a", "a b? b? b?", 1, ""),
        ("c a b", "(a b? c)", 3, ""),
        ("", "a? b?", 0, ""),
        ("x", "", 0, ""),
        ("a a", "(a? a) a", 2, ""),
    ],
)
def test_groups_and_optional_calls(actual: str, expected: str, matched: int, missing: str) -> None:
    asked = grouped(expected)
    alignment = align(tool_calls(actual), asked)
    assert (alignment.counts.matched, " ".join(asked[j].name for j in alignment.missing)) == (
        matched,
        missing,
    )
    assert alignment.counts.expected == matched + len(alignment.missing)


def test_required_calls_come_before_more_optional_ones() -> None:
    assert align(tool_calls("b c a"), grouped("a b? c?")) == Alignment(
        ((2, 0),), (), (0, 1), Counts(1, 3, 1), Counts(1, 3, 1)
    )
    assert align(tool_calls("b c a"), grouped("a b? c?"), ordered=False).counts == Counts(3, 3, 3)


def freely(actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...]) -> Alignment:
    """In order, but for the calls of one message."""
    return Comparison(Calls(actual), PreparedReference(expected)).align(
        RULES["name_only"], Order(within_message=False)
    )


@pytest.mark.parametrize(
    ("actual", "expected", "matched"),
    [
        ("(b a) c", "a b c", 3),
        ("(c b) a", "a b c", 2),
        ("c (b a)", "a b c", 2),
        ("(b a) (d c)", "a b c d", 4),
        ("(b c) (a d)", "a b c d", 3),
        ("(c b a)", "a b? c", 3),
        ("(b b) a", "a b? b?", 1),
        ("b a", "a b", 1),
        ("(b) (a)", "a b", 1),
        ("", "a", 0),
        ("(b a) c", "a", 1),
    ],
)
def test_the_calls_of_one_message_may_come_in_any_order(
    actual: str, expected: str, matched: int
) -> None:
    assert freely(messages(actual), grouped(expected)).counts.matched == matched


def test_messages_mean_nothing_where_the_reference_has_groups_of_its_own() -> None:
    assert freely(messages("(b a) (d c)"), grouped("a b (c d)")) == align(
        messages("b a d c"), grouped("a b (c d)")
    )


@settings(deadline=None, max_examples=examples(100))
@given(
    st.lists(
        st.builds(
            ToolCall, st.sampled_from("ab"), st.just({}), group=st.none() | st.integers(1, 2)
        ),
        max_size=5,
    ),
    st.data(),
)
def test_freedom_within_messages_lies_between_order_and_none(
    actual: list[ToolCall], data: st.DataObject
) -> None:
    expected = tuple(
        data.draw(st.lists(st.builds(ExpectedCall, st.sampled_from("ab")), max_size=5))
    )
    comparison = Comparison(Calls(actual), PreparedReference(expected))
    orders = (IN_ORDER, Order(within_message=False), Order(matters=False))
    found = [comparison.align(RULES["name_only"], order).counts.matched for order in orders]
    assert found == sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (tool_calls("a " * 2000), (*expected_calls("a " * 1999), ExpectedCall("a", optional=True))),
        (
            tool_calls("a b c d " * 500),
            tuple(ExpectedCall(name, group=index // 5) for index, name in enumerate("abcd" * 500)),
        ),
        (
            tuple(tool_call("a", i=i) for i in range(2000)),
            (*(expected_call("a", i=i) for i in range(1999)), ExpectedCall("b", optional=True)),
        ),
    ],
    ids=["one name", "groups", "all different"],
)
def test_too_many_ways_are_too_long_and_not_tried(
    actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...]
) -> None:
    with pytest.raises(TooLongError, match="too many ways to pair calls in a partial order"):
        align(actual, expected, "name_and_args")


def test_long_trajectories_with_groups_are_paired() -> None:
    names = [f"tool{index}" for index in range(1000)]
    expected = tuple(
        ExpectedCall(name, group=index // 10, optional=index % 7 == 0)
        for index, name in enumerate(names)
    )
    shuffled = [
        name for start in range(0, 1000, 10) for name in reversed(names[start : start + 10])
    ]
    assert align(tool_calls(" ".join(shuffled)), expected).counts == Counts(1000, 1000, 1000)
    assert align(tool_calls("a " * 300), [ExpectedCall("a", group=1)] * 300).counts == Counts(
        300, 300, 300
    )


@pytest.mark.slow
def test_the_limit_leaves_room_for_hundreds_of_calls() -> None:
    optional = ExpectedCall("a", optional=True)
    assert align(tool_calls("a " * 300), [*expected_calls("a " * 299), optional]).counts == Counts(
        300, 300, 300
    )
    actual, expected = (
        [tool_call("a", i=i) for i in range(400)],
        [expected_call("a", i=i) for i in range(400)],
    )
    assert align(actual, [*expected, optional], "name_and_args").counts == Counts(400, 400, 400)


def test_the_limit_holds_inside_a_single_block_and_for_seeing_it_from_the_other_side() -> None:
    tangled = [(1 << (600 - i)) - 1 for i in range(600)]
    with pytest.raises(TooLongError):
        block_pairs(tangled, tangled, [(1 << 600) - 1])
    with pytest.raises(TooLongError):
        transposed([(1 << 400) - 1] * 400, 400)

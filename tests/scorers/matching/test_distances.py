"""Edit distances against the usual table, and at size."""

from collections.abc import Sequence
from time import process_time

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.scorers.matching.distances import edit_distance
from support.examples import examples

LETTERS = st.lists(st.sampled_from("abc"), max_size=9)


def table(first: Sequence[str], second: Sequence[str], swaps: bool) -> int:
    """The distance by the recurrence that defines it."""
    known: dict[tuple[int, int], int] = {}
    for i in range(len(first) + 1):
        for j in range(len(second) + 1):
            if not i or not j:
                known[i, j] = i + j
                continue
            ways = [
                known[i - 1, j] + 1,
                known[i, j - 1] + 1,
                known[i - 1, j - 1] + (first[i - 1] != second[j - 1]),
            ]
            if (
                swaps
                and i > 1
                and j > 1
                and first[i - 1] == second[j - 2]
                and first[i - 2] == second[j - 1]
            ):
                ways.append(known[i - 2, j - 2] + 1)
            known[i, j] = min(ways)
    return known[len(first), len(second)]


@pytest.mark.parametrize(
    ("first", "second", "levenshtein", "with_swaps"),
    [
        ("", "", 0, 0),
        ("", "abc", 3, 3),
        ("abc", "", 3, 3),
        ("kitten", "sitting", 3, 3),
        ("ab", "ba", 2, 1),
        ("ca", "abc", 3, 3),  # 2 where a swapped pair may be edited again
        ("abcd", "badc", 3, 2),
    ],
)
def test_known_distances(first: str, second: str, levenshtein: int, with_swaps: int) -> None:
    assert (edit_distance(first, second), edit_distance(first, second, swaps=True)) == (
        levenshtein,
        with_swaps,
    )


@settings(max_examples=examples(300))
@given(LETTERS, LETTERS, st.booleans())
def test_the_distance_is_that_of_the_table(
    first: list[str], second: list[str], swaps: bool
) -> None:
    assert edit_distance(first, second, swaps=swaps) == table(first, second, swaps)


@pytest.mark.parametrize("length", [63, 64, 65, 129])
def test_the_width_of_a_machine_word_is_no_limit(length: int) -> None:
    first, second = ("abcab" * 30)[:length], ("bcacba" * 30)[: length + 1]
    assert [edit_distance(first, second, swaps=swaps) for swaps in (False, True)] == [
        table(first, second, False),
        table(first, second, True),
    ]


@given(LETTERS, LETTERS, LETTERS, st.booleans())
def test_it_is_a_distance(
    first: list[str], second: list[str], third: list[str], swaps: bool
) -> None:
    there = edit_distance(first, second, swaps=swaps)
    assert there == edit_distance(second, first, swaps=swaps)
    assert (there == 0) == (first == second)
    assert (
        edit_distance(first, second, swaps=True)
        <= edit_distance(first, second)
        <= max(len(first), len(second))
    )
    assert edit_distance(first, third) <= edit_distance(first, second) + edit_distance(
        second, third
    )


def test_two_thousand_elements_take_milliseconds() -> None:
    start = process_time()
    assert edit_distance(range(2000), range(1000, 3000), swaps=True) == 2000
    assert process_time() - start < 0.5

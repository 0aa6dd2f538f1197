"""Pairs are formed by the order of arrival alone, and take several of the results that wait."""

from __future__ import annotations

from random import Random

import pytest

from pathgauge.collector.core.verdicts.pairing import MAX_BLOCK, Pair, pairs


def shown(arrivals: str) -> list[Pair]:
    """Capitals are the candidate's results; each value is the place of its letter."""
    return list(pairs((letter.isupper(), float(place)) for place, letter in enumerate(arrivals)))


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("", []),
        ("bbb", []),
        ("CCC", []),
        ("bC", [Pair([1], [0])]),
        ("Cb", [Pair([0], [1])]),
        ("bbC", [Pair([2], [1])]),
        ("CCb", [Pair([1], [2])]),
        ("bbCCC", [Pair([2], [1]), Pair([3], [0])]),
        ("bCCb", [Pair([1], [0]), Pair([2], [3])]),
    ],
)
def test_a_result_is_paired_with_the_newest_that_waits(arrivals: str, expected: list[Pair]) -> None:
    assert shown(arrivals) == expected


@pytest.mark.parametrize(
    ("waiting", "taken"), [(1, 1), (299, 1), (300, 2), (1_000, 6), (10_000, MAX_BLOCK)]
)
def test_a_pair_takes_more_results_while_many_wait(waiting: int, taken: int) -> None:
    [of_baseline] = shown("b" * waiting + "C")
    [of_candidate] = shown("C" * waiting + "b")
    newest = list(range(waiting - taken, waiting))
    assert of_baseline == Pair([waiting], newest)
    assert of_candidate == Pair(newest, [waiting])


def test_a_result_is_used_once() -> None:
    random = Random(5)
    arrivals = "b" * 700 + "".join(random.choice("bbbC") for _ in range(2_000))
    found = [place for pair in shown(arrivals) for place in (*pair.candidate, *pair.baseline)]
    assert len(found) == len(set(found))


def test_more_arrivals_do_not_change_earlier_pairs() -> None:
    arrivals = "b" * 400 + "bC" * 50
    assert shown(arrivals + "bbCCb")[:50] == shown(arrivals)


def test_which_results_form_a_pair_does_not_depend_on_their_scores() -> None:
    places = shown("bbCbCCb")
    scored = pairs([(one, 0.0) for one in (False, False, True, False, True, True, False)])
    assert [(len(a), len(b)) for a, b in scored] == [(len(a), len(b)) for a, b in places]

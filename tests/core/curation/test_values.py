"""The tightest expected value that accepts the values of good runs."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.curation.deviations import cuts
from pathgauge.collector.core.curation.values import arguments, arguments_of_step, learned
from pathgauge.scorers.matching.matchers import (
    Anything,
    Near,
    OneOf,
    Pattern,
    matches,
    read,
    written,
)
from support.examples import examples

R = random.Random(5)
ORDERS = [f"ORD-{R.randrange(10_000, 99_999)}" for _ in range(100)]
UUIDS = [str(uuid.UUID(int=R.getrandbits(128), version=4)) for _ in range(100)]
DATES = [f"2026-{R.randint(1, 12):02d}-{R.randint(1, 28):02d}" for _ in range(100)]
TIMES = [f"{date}T{R.randint(0, 23):02d}:15:00Z" for date in DATES]
AMOUNTS = [round(R.uniform(5, 480), 2) for _ in range(100)]
NAMES = [f"{first}{last} Berg" for first in "ABCDEFGHIJ" for last in ("nna", "va", "li", "mar")]
PNRS = ["".join(R.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=6)) for _ in range(200)]
TEXTS = [f"Call {n}: the lamp is broken, {n * 7}." for n in range(50)]
MAILS = [f"user{n}@example.com" for n in range(50)]


@pytest.mark.parametrize(
    ("values", "accepted", "refused"),
    [
        (ORDERS, ["ORD-00001"], ["ORD-1", "A-10000", "ORD10000", "unknown", "", 10_000, None]),
        (UUIDS, [str(uuid.UUID(int=1))], ["1", "not-a-uuid", ""]),
        (DATES, ["2031-12-31"], ["tomorrow", "2026-13-01", "31.12.2026", ""]),
        (TIMES, ["2030-01-01T09:00:00+02:00"], ["2030-01-01", "9:00", ""]),
        (AMOUNTS, [7, 300.5, 500], [-7, 0, 5_000, "7", None, True]),
        (NAMES, ["Zoë O'Neill", "Max"], ["", " ", 7, "user@example.com"]),
        (PNRS, ["ZZZZZZ", "A1B2C3"], ["ZZZZZ", "zzzzzz", ""]),
        (TEXTS, ["Anything\nat all, 7"], ["", "  ", 7]),
        (MAILS, ["anna.berg@mail.example.org"], ["anna", "anna@", ""]),
        (["late", "damaged"] * 30, ["late", "damaged"], ["other", ""]),
        ([1, 2, 3] * 20, [1, 2, 3.0], [4, "1", True]),
        ([True, False] * 20, [True, False], [1, None, "yes"]),
        ([5] * 30, [5], [6, "5"]),
        ([["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]] * 10, [["b", "a"]], [["a"], ["a", "c"]]),
        ([None, *ORDERS], [None, "ORD-12345"], ["", 7]),
    ],
)
def test_a_learned_value_accepts_new_values_of_the_same_form_and_no_others(
    values: list[Any], accepted: list[Any], refused: list[Any]
) -> None:
    expected = learned(values)
    assert [value for value in [*values, *accepted] if not matches(expected, value)] == []
    assert [value for value in refused if matches(expected, value)] == []


_KEYS = st.sampled_from(["a", "", "$gt", "$any", "$literal"])
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["2026-01-01", "ABC-12", "me@x.org", 10**400, -1.7e308, 5e-324, "a" * 5_000]),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(_KEYS, one, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=examples(1_000), deadline=None)
@given(
    st.lists(_VALUES, min_size=1, max_size=20)
    | st.lists(st.integers() | st.floats(allow_nan=False), min_size=5, max_size=20)
    | st.lists(st.dictionaries(_KEYS, _LEAVES, max_size=3), min_size=3, max_size=20)
)
def test_whatever_the_values_are_all_are_accepted_and_the_matcher_can_be_written(
    values: list[Any],
) -> None:
    expected = learned(values)
    again = read(written(expected))
    assert [value for value in values if not matches(expected, value)] == []
    assert [value for value in values if not matches(again, value)] == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"total": {"$gt": n}} for n in range(50)], {"total": {"$any": True}}),
        (
            [{"$gt": 5}, {"$gt": 7}] * 20,
            {"$one_of": [{"$literal": {"$gt": 5}}, {"$literal": {"$gt": 7}}]},
        ),
        ([{"$gt": 5}] * 20, {"$literal": {"$gt": 5}}),
        ([float(f"1e{n}") for n in range(308)], {"$any": True}),
    ],
)
def test_what_has_no_form_as_a_matcher_may_be_anything(values: list[Any], expected: Any) -> None:
    assert written(learned(values)) == expected


def test_a_range_of_positive_numbers_never_reaches_zero() -> None:
    expected = learned([0.01, *range(1, 2_000)])
    assert isinstance(expected, Near)
    assert not matches(expected, 0)
    assert not matches(expected, -1)


def test_dates_are_no_enumeration_even_if_few_were_seen() -> None:
    assert isinstance(learned(["2026-03-01", "2026-03-02", "2026-03-03"] * 20), Pattern)


def test_a_value_that_was_seen_once_makes_no_enumeration() -> None:
    assert isinstance(learned(["late", "damaged"] * 10), OneOf)
    assert isinstance(learned([*["late", "damaged"] * 10, "unwanted"]), Pattern)


def test_arguments_that_some_calls_leave_out_are_ignored() -> None:
    expected = arguments([{"id": 1}, {"id": 1, "note": "x"}])
    assert written(expected) == {"id": 1, "note": {"$ignore": True}}


def test_a_step_with_few_calls_knows_what_all_calls_of_its_tool_show() -> None:
    of_tool = arguments([{"order": order, "n": 7} for order in ORDERS])
    few = [{"order": order, "n": 7} for order in ORDERS[:39]]
    many = [{"order": f"X{n:03d}", "n": 7} for n in range(40)]
    assert arguments_of_step(few, of_tool) == of_tool
    own = arguments_of_step(many, of_tool)
    assert own is not None
    assert matches(own["order"], "X999")
    assert not matches(own["order"], ORDERS[0])


def test_texts_of_many_forms_are_only_not_blank() -> None:
    expected = learned([*ORDERS, *UUIDS, *MAILS, *NAMES])
    assert isinstance(expected, Pattern)
    assert [matches(expected, text) for text in ("anything", "x@y.org", " ", "")] == [
        *(True, True),
        *(False, False),
    ]


def test_lists_of_many_lengths_are_not_compared() -> None:
    lists = [["a"] * length for length in range(1, 6)]
    assert isinstance(learned(lists), Anything)


def test_lists_of_few_lengths_have_items_of_the_same_form() -> None:
    expected = learned([ORDERS[:1], ORDERS[1:3], ORDERS[3:6]])
    assert matches(expected, ["ORD-12345", "ORD-54321"])
    assert not matches(expected, [])
    assert not matches(expected, ["ORD-12345", "unknown"])
    assert not matches(expected, ["ORD-12345"] * 4)


def deviating(values: list[Any], share: float = 0.1) -> set[int]:
    found = cuts(dict(enumerate(values)), "x", share)
    return {run for cut in found for run in cut.runs}


@pytest.mark.parametrize(
    ("usual", "unusual"),
    [
        (ORDERS, ["unknown", "", None, 12345, "ORD-12345678", "XXX-12345", "ord-12345"]),
        (UUIDS, ["", "none", "1-2-3-4-5"]),
        (DATES, ["tomorrow", "2026-1-1"]),
        (AMOUNTS, [-40.0, 0, 90_000.0, "12"]),
        (["late", "damaged", "unwanted"] * 40, ["because", ""]),
        ([{"a": 1, "b": name} for name in NAMES * 3], [{"a": 1}, {"a": 1, "b": "Al", "c": 1}]),
    ],
)
def test_the_values_of_few_runs_are_found(usual: list[Any], unusual: list[Any]) -> None:
    values = [*usual, *unusual]
    assert deviating(values) == set(range(len(usual), len(values)))


def test_without_bad_runs_nothing_deviates() -> None:
    assert deviating([*ORDERS, "unknown"], share=0) == set()


@pytest.mark.parametrize("seed", range(20))
def test_a_skewed_distribution_has_no_outliers(seed: int) -> None:
    drawn = random.Random(seed)
    assert deviating([drawn.expovariate(0.01) + 1 for _ in range(180)]) == set()


@pytest.mark.parametrize("seed", range(20))
def test_choices_of_a_small_sample_do_not_deviate(seed: int) -> None:
    drawn = random.Random(seed)
    assert deviating([drawn.choice((12, 24, 36, 60)) for _ in range(24)]) == set()

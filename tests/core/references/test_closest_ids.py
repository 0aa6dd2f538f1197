"""The known ids most like an unknown one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.references.closest_ids import ClosestIds

WORDS = ("refund", "cancel", "track", "rebook", "upgrade", "complain")
MANY = [f"{first}_{second}_{number}" for first in WORDS for second in WORDS for number in range(40)]
KNOWN = ClosestIds(MANY)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("refund_order", ("refund_orders",)),
        ("Refund-Orders", ("refund_orders",)),
        ("refundOrders ", ("refund_orders",)),
        ("book_trp", ("book_trip", "book_trap")),
        ("weather", ()),
        ("", ()),
        ("x" * 300, ()),
    ],
)
def test_similar_ids_are_found(name: str, expected: tuple[str, ...]) -> None:
    assert ClosestIds(["book_trip", "refund_orders", "book_trap"]).of(name) == expected


def test_without_known_ids_none_is_similar() -> None:
    assert ClosestIds([]).of("a") == ()
    assert len(ClosestIds([])) == 0


def test_ids_that_differ_in_case_and_punctuation_alone_come_first() -> None:
    assert ClosestIds(["refund-orderx", "RefundOrder"]).of("refund-order")[0] == "RefundOrder"


@settings(deadline=None)
@given(st.sampled_from(MANY))
def test_among_many_ids_one_without_its_first_letter_is_found(name: str) -> None:
    assert KNOWN.of(name[1:])[0] == name


@settings(deadline=None)
@given(st.sampled_from(MANY), st.sampled_from("xyz"), st.integers(0, 5))
def test_among_many_ids_one_with_a_wrong_letter_is_found(name: str, letter: str, at: int) -> None:
    assert name in KNOWN.of(name[:at] + letter + name[at + 1 :])


def test_among_many_ids_one_with_a_different_word_is_found() -> None:
    assert "refund_cancel_7" in KNOWN.of("refundd_cancel_7")
    assert "refund_cancel_7" in KNOWN.of("REFUND-CANCEL-7")


def test_a_look_up_among_20_000_ids_takes_milliseconds() -> None:
    known = ClosestIds(f"scenario_{number:05}_of_a_large_suite" for number in range(20_000))
    known.of("the first one sorts them")
    began = time.thread_time()
    for number in range(20):
        known.of(f"scenaro_{number * 991:05}_of_a_large_suite")
    assert time.thread_time() - began < 20 * 0.05

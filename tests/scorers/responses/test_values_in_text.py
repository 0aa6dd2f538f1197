"""Values in text: numbers in every format, dates, times, ids, and what is none."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.responses.dates_in_text import Date
from pathgauge.scorers.responses.numbers_in_text import numbers
from pathgauge.scorers.responses.values_in_text import ids, values


def readings(text: str) -> list[tuple[str, str]]:
    """The readings of the only number of a text: value and step."""
    ((_, number),) = numbers(text)
    return [(format(value, "f"), format(step, "f")) for value, step in number.readings]


def kinds(text: str) -> dict[str, Any]:
    """What the values of a text are."""
    found: dict[str, Any] = {}
    for value in values(text):
        kind = "number" if value.number else value.time
        found[value.text] = value.dates or value.id or kind
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", [("7", "1")]),
        ("007", [("7", "1")]),
        ("1234.50", [("1234.50", "0.01")]),
        ("1,234.50", [("1234.50", "0.01")]),
        ("1.234,50", [("1234.50", "0.01")]),
        ("1 234,50", [("1234.50", "0.01")]),
        ("1\u202f234,5", [("1234.5", "0.1")]),
        ("1'234'567", [("1234567", "1")]),
        ("1,234,567.8", [("1234567.8", "0.1")]),
        ("1,234", [("1234", "1"), ("1.234", "0.001")]),
        ("1.234", [("1234", "1"), ("1.234", "0.001")]),
        ("0.125", [("0.125", "0.001")]),
        ("12,5", [("12.5", "0.1")]),
        ("1234,567", [("1234.567", "0.001")]),
        ("₹12,34,567.50", [("1234567.50", "0.01")]),
        ("1,23,456", [("123456", "1")]),
        ("123,45,678", []),
        ("1,23,456,789", []),
        ("10,20,30", []),
        ("1.2.3,4", []),
        ("12'5", []),
        ("12.5%", [("12.5", "0.1"), ("0.125", "0.001")]),
        ("12 %", [("12", "1"), ("0.12", "0.01")]),
        ("12％", [("12", "1"), ("0.12", "0.01")]),
        ("12 percent", [("12", "1"), ("0.12", "0.01")]),
        ("12 per cent", [("12", "1"), ("0.12", "0.01")]),
        ("12 percentiles", [("12", "1")]),
        ("1.2k", [("1200", "100"), ("1.2", "0.1")]),
        ("3 million", [("3000000", "1000000"), ("3", "1")]),
        ("3 Billion", [("3000000000", "1000000000"), ("3", "1")]),
        ("2.5e3", [("2500", "100")]),
        ("1e-07", [("0.0000001", "0.0000001")]),
        ("12345678901234567890123456789012345", [("12345678901234567890123456789012345", "1")]),
    ],
)
def test_a_number_has_the_values_of_its_formats(text: str, expected: list[tuple[str, str]]) -> None:
    assert readings(text) == expected


@pytest.mark.parametrize(
    ("text", "is_amount"),
    [
        ("5", False),
        ("1,234,567", False),
        ("5.0", True),
        ("1,234", True),
        ("$5", True),
        ("€ 5", True),
        ("5 EUR", True),
        ("5 €", True),
        ("5%", True),
        ("5k", True),
        ("5 EUROS", False),
    ],
)
def test_an_amount_has_decimals_a_unit_of_money_or_a_scale(text: str, is_amount: bool) -> None:
    ((_, number),) = numbers(text)
    assert number.is_amount is is_amount


def test_groups_that_may_be_several_numbers_are_parts() -> None:
    found = [number.parts for _, number in numbers("10,20,30 and 12 345 and 7")]
    assert found == [("10", "20", "30"), ("12", "345"), ()]


def test_a_number_of_too_many_digits_is_none() -> None:
    assert list(numbers("1" * 401)) == []


@given(st.decimals(0, 10**9, places=2), st.sampled_from([",.", ".,", "'.", "\u00a0,", " ,"]))
def test_every_format_of_an_amount_is_read_as_the_amount(amount: Decimal, signs: str) -> None:
    thousands, point = signs[0], signs[1]
    whole, _, fraction = f"{amount:,.2f}".partition(".")
    ((_, number),) = numbers(f"{whole.replace(',', thousands)}{point}{fraction}")
    assert amount in [reading.value for reading in number.readings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-05", {"2026-01-05": (Date(2026, 1, 5),)}),
        ("2026/1/5", {"2026/1/5": (Date(2026, 1, 5),)}),
        ("05.01.2026", {"05.01.2026": (Date(2026, 1, 5), Date(2026, 5, 1))}),
        ("25/12/99", {"25/12/99": (Date(1999, 12, 25),)}),
        ("1/2/26", {"1/2/26": (Date(2026, 2, 1), Date(2026, 1, 2))}),
        ("5 January 2026", {"5 January 2026": (Date(2026, 1, 5),)}),
        ("the 5th of Jan", {"5th of Jan": (Date(None, 1, 5),)}),
        ("Jan. 5th, 2026", {"Jan. 5th, 2026": (Date(2026, 1, 5),)}),
        ("sept 30", {"sept 30": (Date(None, 9, 30),)}),
        ("May 2026", {"May 2026": (Date(2026, 5, None),)}),
        ("2026-01-05T14:30:00Z", {"2026-01-05": (Date(2026, 1, 5),), "14:30:00": 870}),
        ("at 2:30 PM", {"2:30 PM": 870}),
        ("at 12:05 a.m.", {"12:05 a.m.": 5}),
        ("at 9am", {"9am": 540}),
        ("at 12 pm", {"12 pm": 720}),
        ("at 25:00", {"25": "number", "00": "number"}),
        ("31/31/2026", {"31": "number", "2026": "number"}),
        ("ORD-1234", {"ORD-1234": "ord1234"}),
        ("(refund R_7001).", {"R_7001": "r7001"}),
        ("a1b2c3d", {"a1b2c3d": "a1b2c3d"}),
        ("v1.2.3, or", {"v1.2.3": "1.2.3"}),
        ("10.0.0.1", {"10.0.0.1": "10.0.0.1"}),
        ("B2B, A4, gpt-4o", {"2": "number", "4": "number"}),
        ("450km, 21st, 24-hour", {"450": "number", "21": "number", "24": "number"}),
        ("1. one\n 2) two\n- 13. three", {}),
        ("Section 3. end 24/7", {"3": "number"}),
        ("٣٤٥", {"345": "number"}),
        ("x" * 300 + "12", {"12": "number"}),
        ("-5 degrees", {"5": "number"}),
        ("no values", {}),
        ("", {}),
    ],
)
def test_each_part_of_a_text_is_one_value(text: str, expected: dict[str, Any]) -> None:
    assert kinds(text) == expected


def test_ids_to_compare_with_are_words_and_their_parts() -> None:
    assert sorted(set(ids("Order ORD-12_a at v1.2.3, no-digits"))) == [
        *("1.2.3", "12", "2", "3", "a", "ord", "ord12a", "v1")
    ]


@given(st.text(alphabet="0123456789.,:-/ aJnMay%$kM\n", max_size=60))
def test_any_text_has_values_that_are_parts_of_it_in_any_order(text: str) -> None:
    found = list(values(text))
    assert all(value.text in text for value in found)
    assert sum(len(value.text) for value in found) <= len(text)

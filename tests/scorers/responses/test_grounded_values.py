"""Grounded values: what occurs in results and input, and when that is not known."""

from typing import Any

import pytest

from pathgauge import GroundedValues, Invocation, Score, ToolCall, check_scorer, invocation
from pathgauge.scorers.responses.grounded_values import MAX_RESPONSE
from pathgauge.scorers.responses.value_sources import MAX_TEXT
from support.proportion import in_proportion


def score(response: str | None, *results: Any, **others: Any) -> Score:
    """The score with the given results. `others` are fields of the invocation."""
    calls = tuple(ToolCall("search", {}, result=result) for result in results)
    scorer = others.pop("scorer", GroundedValues())
    fields = {"user_input": "please", "final_response": response} | others
    found: Score = scorer.score(invocation(*calls, **fields), None)
    return found


@pytest.mark.parametrize(
    ("response", "result"),
    [
        ("It costs $1,234.50", {"total": 1234.5}),
        ("Es kostet 1.234,50 €", {"total": 1234.5}),
        ("It costs 1234.5", "total: 1,234.50 USD"),
        ("12.5 % of them", {"share": 0.125}),
        ("a share of 0.125", "12.5%"),
        ("about 12", {"mean": 12.4}),
        ("about 1.2 million", {"users": 1_234_567}),
        ("about 1.2M", {"users": 1_234_567}),
        ("12 hours", {"hours": -12}),
        ("10,20,30", [10, 20, 30]),
        ("12 345 rooms", [12, 345]),
        ("on January 5th, 2026", "2026-01-05T10:00:00Z"),
        ("on 05/01/2026", {"date": "2026-01-05"}),
        ("on January 5th", {"date": "2026-01-05"}),
        ("in January 2026", {"date": "2026-01-05"}),
        ("on January 5, 2026", "Jan 5"),
        ("on 2026-01-05", {"year": 2026, "month": 1, "day": 5}),
        ("at 2:30 PM", "2026-01-05T14:30:00Z"),
        ("order ord-1234", {"id": "ORD-1234"}),
        ("order #1234", {"id": "ORD-1234"}),
        ("order ORD1234", {"id": "ORD-1234"}),
        ("commit a1b2c3d", {"sha": "a1b2c3d4e5f6a7b8c9d0"}),
        ("version 1.2.3", {"v1.2.3": True}),
        ("card 12345678901234567890123", "12345678901234567890123"),
        ("room 4711", '{"rooms": ["{\\"number\\": 4711}"]}'),
        ("room 4711", [{"type": "text", "text": '{"number": 4711}'}]),
        ("room 4711", {4711: "key"}),
        ("٤٧١١", 4711),
        ("您的订单4711已发货", {"order": 4711}),
        ("订单ORD-1042已发货，共计25.50元", {"order": "ORD-1042", "total": 25.5}),
        ("価格は１２００円です", {"price": 1200}),
        ("주문 ORD-1042입니다", {"order": "ORD-1042"}),
        ("ราคา1200บาท", {"price": 1200}),
        ("2026年1月25日发货", {"date": "2026-01-25"}),
        ("1월 25일", "2026-01-25"),
        ("on January 25", "1月25日に届きます"),
        ("order ORD-1042", "订单ORD-1042已发货"),
        ("room 4711", "room ٤٧١١"),
        ("1e6 rows", 1_000_000),
        ("1000000 rows", "1e6"),
        ("1E-5", 0.00001),
        ("2.5e3 rows", 2500),
        ("commit 12e45", {"sha": "12e45"}),
        ("Call 415-555-2671", "4155552671"),
        ("Call 4155552671", {"phone": "415-555-2671"}),
        ("Call (415) 555-2671", "415.555.2671"),
        ("Call +1 415-555-2671", "(415) 555-2671"),
        ("Call 415 555 2671", "+14155552671"),
        ("Call 030 1234567", "+49 (0)30/1234567"),
        ("Rufen Sie +49 30 123 45 67 an", "0301234567"),
        ("Appelez le 06 12 34 56 78", "+33612345678"),
        ("请拨打138 0013 8000", 13800138000),
        ("card 4111 1111 1111 1111", "4111-1111-1111-1111"),
        ("SSN 123-45-6789", "123456789"),
        ("Call 030 1234567", [30, 1234567]),
        ("1000-2000 rooms", [1000, 2000]),
        ("10 20 30 40", [10, 20, 30, 40]),
        ("(1) 20000-30000 rooms", [20000, 30000]),
        ("今天下午2:30见", "14:30"),
        ("at 14:30", "下午2:30"),
        ("下午2点30分", "14:30"),
        ("上午9：05", "09:05"),
        ("凌晨12:15", "00:15"),
        ("午後0時30分", "12:30"),
        ("晚上8点半", "20:30"),
        ("晚上12点", "00:00"),
        ("夜2時", "02:00"),
        ("中午12:30", "12:30"),
        ("中午11点半", "11:30"),
        ("中午1点", "13:00"),
        ("오후 2시 30분에", "14:30"),
        ("下午14:30", "2:30 PM"),
        ("上午14:30", "14:30"),
        ("每天朝99人", 99),
        ("下午20个", 20),
        ("午後2時間で30件", {"count": 30}),
    ],
)
def test_a_value_is_grounded_in_whatever_format(response: str, result: Any) -> None:
    assert score(response, result).value == 1.0


@pytest.mark.parametrize(
    ("response", "result", "missing"),
    [
        ("It costs 1,235", {"total": 1234}, "1,235"),
        ("It costs 12.4", {"total": 12}, "12.4"),
        ("It costs 12.45", {"total": 12.4}, "12.45"),
        ("about 1.3 million", {"users": 1_234_567}, "1.3 million"),
        ("5 EUR", {"total": 6}, "5 EUR"),
        ("on January 6th", "2026-01-05", "January 6th"),
        ("on January 5th, 2025", "2026-01-05", "January 5th, 2025"),
        ("at 2:30", "14:30", "2:30"),
        ("order ORD-1235", "ORD-1234", "ORD-1235"),
        ("commit a1b2c3", "a1b2c3d4e5f6a7b8c9d0", "a1b2c3"),
        ("card 12345678901234567890123", "12345678901234567890124", "12345678901234567890123"),
        ("10,20,30", [10, 20], "10,20,30"),
        ("您的订单4712已发货", {"order": 4711}, "4712"),
        ("2026年1月26日发货", {"date": "2026-01-25"}, "2026年1月26日"),
        ("42 of them", {"flag": True, "none": None}, "42"),
        ("1e6 rows", 1_600_000, "1e6"),
        ("1e-5", 0.0001, "1e-5"),
        ("Call 415-555-2672", "4155552671", "415-555-2672"),
        ("Call 4155552672", "415-555-2671", "4155552672"),
        ("Call +44 415 555 2671", "+1 415 555 2671", "+44 415 555 2671"),
        ("Call +1 415 555 2671", "555 2671", "+1 415 555 2671"),
        ("下午2:30", "02:30", "下午2:30"),
        ("上午2:30", "下午2:30", "上午2:30"),
        ("at 2:30", "下午2:30", "2:30"),
        ("晚上8点", "08:00", "晚上8点"),
    ],
)
def test_a_value_that_occurs_nowhere_is_not_grounded(
    response: str, result: Any, missing: str
) -> None:
    found = score(response, result)
    assert (found.value, found.details["ungrounded"]) == (0.0, [missing])


def test_the_explanation_lists_what_is_not_grounded() -> None:
    assert score("12 rooms for 80 EUR, 13 beds, 12 keys", {"rooms": 12}) == Score(
        1 / 3,
        None,
        "1 of 3 values occur in tool results or the user's input; not 80 EUR, 13",
        {"values": 3, "ungrounded": ["80 EUR", "13"]},
    )


def test_values_of_the_user_and_of_errors_are_grounded() -> None:
    assert score("order 4711", user_input="Where is order 4711?").value == 1.0
    assert (
        score("order 4711", user_input="4711", scorer=GroundedValues(user_input=False)).value == 0
    )
    failed = ToolCall("search", {}, error="no order 4711")
    actual = invocation(failed, final_response="4711?", user_input="")
    assert GroundedValues().score(actual, None).value == 1.0


@pytest.mark.parametrize(
    ("response", "ignore_up_to", "missing"),
    [
        ("10 rooms, 11 beds", 10, ["11"]),
        ("10 rooms, 11 beds", 11, None),
        ("0 rooms, 1 bed", 0, ["1"]),
        ("9.5 rooms, 3 %", 10, ["9.5", "3 %"]),
        ("10,20,30", 100, ["10,20,30"]),
    ],
)
def test_small_whole_numbers_are_ignored(
    response: str, ignore_up_to: int, missing: list[str] | None
) -> None:
    assert score(response, scorer=GroundedValues(ignore_up_to)).details.get("ungrounded") == missing


@pytest.mark.parametrize(
    ("response", "others", "reason"),
    [
        (None, {}, "response_not_recorded"),
        ("no values, 3 rooms", {}, "not_applicable"),
        ("1" + "x" * MAX_RESPONSE, {}, "too_long"),
        ("4711", {"flags": frozenset({"no_tool_spans"})}, "tools_not_recorded"),
        ("4711", {"flags": frozenset({"truncated"})}, "incomplete"),
        ("4711", {"user_input": None}, "incomplete"),
        ("4711", {"user_input": "x" * MAX_TEXT}, "too_long"),
    ],
)
def test_there_is_no_value_if_the_sources_are_not_known(
    response: str | None, others: dict[str, Any], reason: str
) -> None:
    assert score(response, **others).reason == reason


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("function", "results_not_recorded"),
        ("agent", "results_not_recorded"),
        ("handoff", None),
        ("final_answer", None),
    ],
)
def test_a_result_that_is_not_recorded_may_hold_the_value(kind: Any, reason: str | None) -> None:
    call = ToolCall("search", {}, kind=kind)
    actual = invocation(call, final_response="4711", user_input="please")
    assert GroundedValues().score(actual, None).reason == reason


def test_what_is_grounded_is_certain_whatever_is_missing() -> None:
    actual = invocation(
        ToolCall("search", {}),
        ToolCall("search", {}, result=4711),
        final_response="4711",
        flags=frozenset({"dropped_spans", "truncated"}),
    )
    assert GroundedValues().score(actual, None).value == 1.0


def test_an_option_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="ignore_up_to: found -1, expected a number from 0"):
        GroundedValues(-1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "evil",
    [
        "1 ",
        "1.",
        "1,",
        "a1-",
        "jan ",
        "1 jan ",
        "1:",
        "12:30 ",
        "1" * 50,
        " ",
        "[",
        "e1",
        "- ",
        "v1.",
        "1 1x ",
        "+1-",
        "(11) ",
        "下午",
        "下午1:",
        "夜1",
        "1e",
    ],
)
def test_the_time_is_proportional_to_the_length_of_hostile_text(evil: str) -> None:
    def described(length: int) -> Invocation:
        text = (evil * length)[:length]
        return invocation(
            ToolCall("t", {}, result=text), final_response=f"4711 ORD-99 {text}", user_input=""
        )

    def read(actual: Invocation) -> None:
        GroundedValues().score(actual, None)

    assert in_proportion(described, read, 16_000)


def test_it_keeps_the_contract() -> None:
    check_scorer(GroundedValues(0, user_input=False))

"""Budgets: no uncovered call is sent, in whatever order calls begin and end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client.budget import Amounts, Budget, Charge
from pathgauge.scorers.judges.model_client.settings import BudgetLimits, Price
from support.judge_server import JudgeServer, Reply, answering, completion, failing
from support.loopback import VALID, RecordingObserver, Time, model_client, outcome, question

HOUR, DAY = 3600.0, 86_400.0
NOON = 20_000 * DAY + 12 * HOUR
PRICE = Price(input=1.0, output=4.0)
MILLION = 1_000_000


def refused(budget: Budget, asked: int = 1, answered: int = 1, price: Price | None = None) -> bool:
    try:
        budget.release(budget.reserve(asked, answered, price))
    except JudgeError:
        return True
    return False


def test_a_refusal_has_the_reason_budget() -> None:
    with pytest.raises(JudgeError) as caught:
        Budget(BudgetLimits(tokens_per_day=1), Time(NOON)).reserve(1, 1, None)
    assert (caught.value.reason, str(caught.value)) == (
        "budget",
        "the tokens of this day are used up",
    )


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        (BudgetLimits(), 20),
        (BudgetLimits(calls_per_hour=3), 3),
        (BudgetLimits(calls_per_day=4), 4),
        (BudgetLimits(tokens_per_hour=300), 10),
        (BudgetLimits(tokens_per_day=299), 9),
        (BudgetLimits(usd_per_hour=0.00009), 1),
        (BudgetLimits(usd_per_day=0.0009), 10),
        (BudgetLimits(calls_per_hour=9, tokens_per_day=120), 4),
    ],
)
def test_the_tightest_limit_decides(limits: BudgetLimits, fits: int) -> None:
    budget = Budget(limits, Time(NOON))
    charged = 0
    while charged < 20 and not refused(budget, 10, 20, PRICE):
        budget.reserve(10, 20, PRICE)
        charged += 1
    assert charged == fits


def test_estimates_count_until_the_usage_is_reported() -> None:
    budget = Budget(BudgetLimits(tokens_per_hour=100), Time(NOON))
    charge = budget.reserve(50, 50, None)
    assert refused(budget)
    assert budget.book(charge, 20, 10) is None
    assert [*budget.remaining()] == [("tokens", "hour", 70.0)]
    assert not refused(budget, 50, 20)


def test_usage_above_the_estimate_counts() -> None:
    budget = Budget(BudgetLimits(tokens_per_hour=100, usd_per_day=1.0), Time(NOON))
    assert budget.book(budget.reserve(10, 10, PRICE), 100, 50) == pytest.approx(300e-6)
    assert dict((measure, left) for measure, _, left in budget.remaining()) == {
        "tokens": 0.0,
        "usd": pytest.approx(1 - 300e-6),
    }
    assert refused(budget, 1, 0, PRICE)


def test_windows_are_utc_hours_and_days() -> None:
    time = Time(NOON + 3599)
    budget = Budget(BudgetLimits(calls_per_hour=1, calls_per_day=2), time)
    budget.reserve(1, 1, None)
    assert refused(budget)
    time.now = NOON + 3600
    budget.reserve(1, 1, None)
    time.now = NOON + 11 * HOUR
    assert refused(budget)
    time.now = NOON + 12 * HOUR
    assert not refused(budget)


def test_usage_is_charged_to_the_window_of_the_request() -> None:
    time = Time(NOON)
    budget = Budget(BudgetLimits(tokens_per_hour=100), time)
    early, late = budget.reserve(10, 20, None), budget.reserve(10, 20, None)
    time.now = NOON + HOUR
    budget.book(early, 90, 90)
    budget.release(late)
    assert [*budget.remaining()] == [("tokens", "hour", 100.0)]


@pytest.mark.parametrize("back", [1, HOUR + 1, 2 * HOUR, 40 * DAY])
def test_setting_the_clock_back_does_not_reset_a_budget(back: float) -> None:
    time = Time(NOON)
    budget = Budget(BudgetLimits(calls_per_hour=1, calls_per_day=2), time)
    budget.reserve(1, 1, None)
    time.now = NOON - back
    assert refused(budget)
    restarted = Budget(BudgetLimits(calls_per_hour=1, calls_per_day=2), time)
    restarted.restore(budget.spent())
    assert refused(restarted)


def test_a_clock_that_goes_on_after_a_short_step_back_does_not_reset_a_budget() -> None:
    time = Time(NOON)
    budget = Budget(BudgetLimits(calls_per_hour=1), time)
    budget.reserve(1, 1, None)
    time.now = NOON - 1
    assert refused(budget)
    time.now = NOON + 1
    assert refused(budget)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_clock_that_was_far_ahead_closes_a_budget_no_longer_than_until_the_next_window(
    restarts: bool,
) -> None:
    time, limits = Time(NOON + 365 * DAY), BudgetLimits(calls_per_day=1)
    budget = Budget(limits, time)
    budget.reserve(1, 1, None)
    time.now = NOON
    if restarts:
        spent, budget = budget.spent(), Budget(limits, time)
        budget.restore(spent)
    assert refused(budget)
    time.now = NOON + 12 * HOUR
    assert not refused(budget)


def test_a_budget_in_usd_needs_a_price() -> None:
    assert refused(Budget(BudgetLimits(usd_per_day=100.0), Time(NOON)), price=None)
    assert not refused(Budget(BudgetLimits(usd_per_day=0.0), Time(NOON)), price=Price(0.0, 0.0))


def test_spending_survives_a_restart() -> None:
    time = Time(NOON)
    limits = BudgetLimits(calls_per_hour=10, tokens_per_day=1000, usd_per_day=1.0)
    before = Budget(limits, time)
    before.book(before.reserve(1, 1, PRICE), 100, 100)
    before.reserve(100, 100, PRICE)
    after = Budget(limits, time)
    after.restore(before.spent())
    assert (after.spent(), [*after.remaining()]) == (before.spent(), [*before.remaining()])
    assert before.spent() == {
        "hour": (NOON // HOUR, 2.0, 400.0, 0.001),
        "day": (NOON // DAY, 2.0, 400.0, 0.001),
    }
    time.now = NOON + HOUR
    later = Budget(limits, time)
    later.restore(before.spent())
    assert [*later.remaining()] == [
        ("calls", "hour", 10.0),
        ("tokens", "day", 600.0),
        ("usd", "day", pytest.approx(0.999)),
    ]


@pytest.mark.parametrize(
    "spent", [{}, {"hour": ()}, {"hour": (NOON // HOUR, 1.0)}, {"week": (1.0, 2.0, 3.0, 4.0)}]
)
def test_invalid_saved_state_is_ignored(spent: dict[str, tuple[float, ...]]) -> None:
    budget = Budget(BudgetLimits(calls_per_hour=1), Time(NOON))
    budget.restore(spent)
    assert not refused(budget)


@dataclass
class Charged:
    """The expected charge of one call."""

    hour: int
    day: int
    charge: Charge
    asked: int
    answered: int
    open: bool = True


def total(charged: Iterable[Charged]) -> tuple[int, int, float]:
    """Calls, tokens and millionths of a dollar."""
    found = [*charged]
    return (
        len(found),
        sum(one.asked + one.answered for one in found),
        sum(one.asked * PRICE.input + one.answered * PRICE.output for one in found),
    )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "book", "release", "wait"]),
        st.integers(0, 400),
        st.integers(0, 400),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 10), st.integers(1, 1000), st.integers(100, 3000))
def test_limits_hold_in_any_order_of_events(
    steps: list[tuple[str, int, int]], calls: int, tokens: int, millionths: int
) -> None:
    """While usage stays within estimates, no window is overdrawn, nothing is lost or counted twice,
    and nothing that fits is refused.
    """
    time = Time(NOON)
    budget = Budget(
        BudgetLimits(
            calls_per_hour=calls, tokens_per_hour=tokens, usd_per_day=millionths / MILLION
        ),
        time,
    )
    charged: list[Charged] = []
    for step, first, second in steps:
        hour, day = int(time.now // HOUR), int(time.now // DAY)
        under_way = [one for one in charged if one.open]
        match step:
            case "reserve":
                wanted = Charged(hour, day, Charge(Amounts(), None), first, second)
                of_hour = total([*(one for one in charged if one.hour == hour), wanted])
                of_day = total([*(one for one in charged if one.day == day), wanted])
                fits = of_hour[0] <= calls and of_hour[1] <= tokens and of_day[2] <= millionths
                assert refused(budget, first, second, PRICE) == (not fits)
                if fits:
                    charged.append(replace(wanted, charge=budget.reserve(first, second, PRICE)))
            case "book" if under_way:
                one = under_way[first % len(under_way)]
                one.asked, one.answered, one.open = (
                    min(one.asked, first),
                    min(one.answered, second),
                    False,
                )
                budget.book(one.charge, one.asked, one.answered)
            case "release" if under_way:
                one = under_way[first % len(under_way)]
                budget.release(one.charge)
                charged.remove(one)
            case "wait":
                time.now += first * 60
        for number, (_, *spent) in zip(
            (time.now // HOUR, time.now // DAY), budget.spent().values(), strict=True
        ):
            expected = total(one for one in charged if number in (one.hour, one.day))
            assert spent == pytest.approx([expected[0], expected[1], expected[2] / MILLION])


@pytest.mark.parametrize(
    ("replies", "calls", "tokens"),
    [
        pytest.param([answering(usage=(70, 30), **VALID)], 1, 100, id="use as reported"),
        pytest.param([answering(usage=None, **VALID)], 1, None, id="the estimate stays"),
        pytest.param(
            [completion("no", usage=(70, 30)), answering(usage=(80, 20), **VALID)],
            2,
            200,
            id="a repair costs, too",
        ),
        pytest.param(
            [failing(500), failing(429), answering(usage=(70, 30), **VALID)],
            3,
            100,
            id="failures are calls without tokens",
        ),
        pytest.param([failing(400)], 1, 0, id="a rejection is a call without tokens"),
        pytest.param(
            [answering(**VALID).after(5), answering(usage=(0, 0), **VALID)],
            2,
            None,
            id="what took too long may have been charged",
        ),
    ],
)
async def test_every_request_is_charged(
    replies: list[Reply], calls: int, tokens: int | None
) -> None:
    limits = BudgetLimits(calls_per_day=1000, tokens_per_day=100_000)
    with JudgeServer(*replies) as server:
        ask = model_client(server, limits=limits, timeout=0.3)
        await outcome(ask, question(max_tokens=50))
        await ask.aclose()
    _, spent_calls, spent_tokens, _ = ask.budget.spent()["day"]
    size = len(server.requests[0].system + server.requests[0].user)
    assert spent_calls == calls
    if tokens is None:
        assert size / 4 + 50 < spent_tokens < size / 2 + 150
    else:
        assert spent_tokens == tokens


async def test_no_request_without_remaining_budget() -> None:
    observer = RecordingObserver()
    with JudgeServer(completion("no"), answering(**VALID)) as server:
        ask = model_client(server, observer, limits=BudgetLimits(calls_per_hour=3))
        assert [await outcome(ask, question(str(number))) for number in range(4)] == [
            "valid",
            "valid",
            "budget",
            "budget",
        ]
        await ask.aclose()
    assert (len(server.requests), len(observer.requests)) == (3, 3)


async def test_no_repair_request_without_remaining_budget() -> None:
    with JudgeServer(completion("no"), answering(**VALID)) as server:
        ask = model_client(server, limits=BudgetLimits(calls_per_hour=1))
        assert await outcome(ask) == "budget"
        await ask.aclose()
    assert len(server.requests) == 1


async def test_requests_that_are_not_sent_cost_nothing() -> None:
    with JudgeServer(failing(500)) as server:
        ask = model_client(server, limits=BudgetLimits(calls_per_day=100), retries=10, deadline=1e6)
        assert await outcome(ask) == "judge_unavailable"
        sent = len(server.requests)
        assert await outcome(ask, question("another")) == "judge_unavailable"
        await ask.aclose()
    assert (len(server.requests), [*ask.budget.remaining()]) == (
        sent,
        [("calls", "day", 100.0 - sent)],
    )

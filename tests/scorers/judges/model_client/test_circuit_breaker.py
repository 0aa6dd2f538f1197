"""The circuit breaker: a server that is down is left alone, and found out about by one call at a
time.
"""

from __future__ import annotations

import asyncio

import pytest

from pathgauge.scorers.judges.model_client.circuit_breaker import Breaker
from support.judge_server import JudgeServer, Reply, answering, failing, hanging_up
from support.loopback import VALID, Time, Told, asker, outcome, question

RIGHT = answering(**VALID)
F, S, A = "failed", "succeeded", "abandoned"


def breaker(time: Time) -> Breaker:
    return Breaker(time, failures=3, pause=10.0)


def call(found: Breaker, outcome: str) -> bool:
    """Whether a call was let through, which ends so."""
    passage = found.begin()
    if passage is None:
        return False
    getattr(found, outcome)(passage)
    return True


@pytest.mark.parametrize(
    ("outcomes", "closed"),
    [
        ([], True),
        ([F, F], True),
        ([F, F, F], False),
        ([F, F, S, F, F], True),
        ([F, F, A, F], False),
        ([A, A, A, A], True),
        ([S, F, F, F], False),
    ],
)
def test_it_opens_after_failures_in_a_row(outcomes: list[str], closed: bool) -> None:
    found = breaker(Time())
    assert [call(found, outcome) for outcome in outcomes] == [True] * len(outcomes)
    assert found.lets_through == closed


def opened(time: Time) -> Breaker:
    found = breaker(time)
    for _ in range(3):
        call(found, F)
    return found


def test_one_call_finds_out_after_the_pause() -> None:
    time = Time()
    found = opened(time)
    time.now += 9.9
    assert found.begin() is None
    time.now += 0.1
    assert (found.begin(), found.begin()) == ("probe", None)
    found.succeeded("probe")
    assert (found.begin(), found.begin()) == ("call", "call")
    assert [call(found, F), call(found, F), found.lets_through] == [True, True, True]


def test_a_failed_probe_begins_another_pause() -> None:
    time = Time()
    found = opened(time)
    time.now += 10
    assert call(found, F)
    time.now += 9
    assert not found.lets_through
    time.now += 1
    assert call(found, S)
    assert found.lets_through


def test_a_probe_that_tells_nothing_leaves_its_place_to_another() -> None:
    time = Time()
    found = opened(time)
    time.now += 10
    assert call(found, A)
    assert (found.begin(), found.begin()) == ("probe", None)


def test_calls_from_before_it_opened_change_nothing() -> None:
    time = Time()
    found = breaker(time)
    early = [found.begin() for _ in range(5)]
    assert early == ["call"] * 5
    for _ in range(3):
        found.failed("call")
    time.now += 10
    assert found.begin() == "probe"
    found.failed("call")
    found.succeeded("call")
    found.abandoned("call")
    assert found.begin() is None
    found.succeeded("probe")
    assert found.lets_through


async def test_a_dead_server_is_soon_left_alone_and_asked_again_later() -> None:
    time, told = Time(), Told()
    with JudgeServer(failing(503)) as server:
        ask = asker(server, told, time=time, retries=1)
        found = [await outcome(ask, question(str(number))) for number in range(10)]
        assert (found, len(server.asked)) == (["judge_unavailable"] * 10, 5)
        server.then(RIGHT)
        time.now += 30
        assert [await outcome(ask, question(str(number))) for number in range(10)] == ["valid"] * 10
        await ask.aclose()
    assert [code for _, code in told.requests] == ["503"] * 5 + ["200"] * 10


@pytest.mark.parametrize("reply", [failing(500), hanging_up(RIGHT), RIGHT.after(9)])
async def test_failing_hanging_up_and_silence_are_all_down(reply: Reply) -> None:
    with JudgeServer(reply) as server:
        ask = asker(server, retries=0, timeout=0.1)
        for number in range(7):
            await outcome(ask, question(str(number)))
        await ask.aclose()
    assert len(server.asked) == 5


async def test_the_models_of_a_server_fail_on_their_own() -> None:
    with JudgeServer(
        judge=lambda asked: failing(503) if asked.body["model"] == "judge" else RIGHT
    ) as server:
        ask = asker(server, retries=9)
        assert await outcome(ask) == "judge_unavailable"
        assert await outcome(ask, question(model="local:other")) == "valid"
        await ask.aclose()


@pytest.mark.parametrize("status", [400, 401, 429])
async def test_a_server_that_answers_is_not_down(status: int) -> None:
    with JudgeServer(failing(status)) as server:
        ask = asker(server, retries=0)
        for number in range(8):
            await outcome(ask, question(str(number)))
        await ask.aclose()
    assert len(server.asked) == 8


async def test_a_dead_model_is_not_waited_for_behind_a_slow_one() -> None:
    with JudgeServer(
        judge=lambda asked: failing(503) if asked.body["model"] == "judge" else RIGHT.after(1)
    ) as server:
        ask = asker(server, retries=9, concurrency=1)
        assert await outcome(ask) == "judge_unavailable"
        slow = asyncio.create_task(outcome(ask, question(model="local:other")))
        while len(server.asked) < 6:
            await asyncio.sleep(0.01)
        assert await outcome(ask, question("another")) == "judge_unavailable"
        assert not slow.done()
        assert await slow == "valid"
        await ask.aclose()

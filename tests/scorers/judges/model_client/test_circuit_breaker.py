"""The circuit breaker: it stops calls to a failing server, and probes it one call at a time."""

from __future__ import annotations

import asyncio

import pytest

from pathgauge.scorers.judges.model_client.circuit_breaker import Breaker
from pathgauge.scorers.judges.model_client.failures import ServerState
from support.judge_server import JudgeServer, Reply, answering, failing, hanging_up
from support.loopback import VALID, RecordingObserver, Time, model_client, outcome, question

RIGHT = answering(**VALID)
F: ServerState = "down"
S: ServerState = "up"
A: ServerState = "unknown"


def breaker(time: Time) -> Breaker:
    return Breaker(time, failures=3, pause=10.0)


def call(found: Breaker, server: ServerState) -> bool:
    """Make a call that shows this state of the server. Returns whether it was allowed."""
    permit = found.begin()
    if permit is None:
        return False
    found.record(permit, server)
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
def test_it_opens_after_consecutive_failures(outcomes: list[ServerState], closed: bool) -> None:
    found = breaker(Time())
    assert [call(found, outcome) for outcome in outcomes] == [True] * len(outcomes)
    assert found.allows_calls == closed


def opened(time: Time) -> Breaker:
    found = breaker(time)
    for _ in range(3):
        call(found, F)
    return found


def test_one_probe_is_allowed_after_the_pause() -> None:
    time = Time()
    found = opened(time)
    time.now += 9.9
    assert found.begin() is None
    time.now += 0.1
    assert (found.begin(), found.begin()) == ("probe", None)
    found.record("probe", "up")
    assert (found.begin(), found.begin()) == ("call", "call")
    assert [call(found, F), call(found, F), found.allows_calls] == [True, True, True]


def test_a_failed_probe_starts_another_pause() -> None:
    time = Time()
    found = opened(time)
    time.now += 10
    assert call(found, F)
    time.now += 9
    assert not found.allows_calls
    time.now += 1
    assert call(found, S)
    assert found.allows_calls


def test_after_an_inconclusive_probe_another_one_is_allowed() -> None:
    time = Time()
    found = opened(time)
    time.now += 10
    assert call(found, A)
    assert (found.begin(), found.begin()) == ("probe", None)


def test_results_of_calls_from_before_it_opened_are_ignored() -> None:
    time = Time()
    found = breaker(time)
    early = [found.begin() for _ in range(5)]
    assert early == ["call"] * 5
    for _ in range(3):
        found.record("call", "down")
    time.now += 10
    assert found.begin() == "probe"
    found.record("call", "down")
    found.record("call", "up")
    found.record("call", "unknown")
    assert found.begin() is None
    found.record("probe", "up")
    assert found.allows_calls


async def test_requests_to_a_dead_server_stop_and_resume_later() -> None:
    time, observer = Time(), RecordingObserver()
    with JudgeServer(failing(503)) as server:
        ask = model_client(server, observer, time=time, retries=1)
        found = [await outcome(ask, question(str(number))) for number in range(10)]
        assert (found, len(server.requests)) == (["judge_unavailable"] * 10, 5)
        server.then(RIGHT)
        time.now += 30
        assert [await outcome(ask, question(str(number))) for number in range(10)] == ["valid"] * 10
        await ask.aclose()
    assert [code for _, code in observer.requests] == ["503"] * 5 + ["200"] * 10


@pytest.mark.parametrize("reply", [failing(500), hanging_up(RIGHT), RIGHT.after(9)])
async def test_errors_dropped_connections_and_timeouts_open_the_circuit(reply: Reply) -> None:
    with JudgeServer(reply) as server:
        ask = model_client(server, retries=0, timeout=0.1)
        for number in range(7):
            await outcome(ask, question(str(number)))
        await ask.aclose()
    assert len(server.requests) == 5


async def test_each_model_has_its_own_circuit_breaker() -> None:
    with JudgeServer(
        judge=lambda asked: failing(503) if asked.body["model"] == "judge" else RIGHT
    ) as server:
        ask = model_client(server, retries=9)
        assert await outcome(ask) == "judge_unavailable"
        assert await outcome(ask, question(model="local:other")) == "valid"
        await ask.aclose()


@pytest.mark.parametrize("status", [400, 401, 429])
async def test_client_errors_do_not_open_the_circuit(status: int) -> None:
    with JudgeServer(failing(status)) as server:
        ask = model_client(server, retries=0)
        for number in range(8):
            await outcome(ask, question(str(number)))
        await ask.aclose()
    assert len(server.requests) == 8


async def test_an_open_circuit_fails_without_waiting_for_a_slot() -> None:
    with JudgeServer(
        judge=lambda asked: failing(503) if asked.body["model"] == "judge" else RIGHT.after(1)
    ) as server:
        ask = model_client(server, retries=9, concurrency=1)
        assert await outcome(ask) == "judge_unavailable"
        slow = asyncio.create_task(outcome(ask, question(model="local:other")))
        while len(server.requests) < 6:
            await asyncio.sleep(0.01)
        assert await outcome(ask, question("another")) == "judge_unavailable"
        assert not slow.done()
        assert await slow == "valid"
        await ask.aclose()

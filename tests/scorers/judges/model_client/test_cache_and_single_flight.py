"""Cache and single flight: identical questions are asked once, and a cancelled caller does not
affect the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.judges.answers import label
from pathgauge.scorers.judges.model_client.cache import Cache
from pathgauge.scorers.judges.model_client.settings import Provider
from support.judge_server import JudgeServer, answering, completion, failing
from support.loopback import VALID, RecordingObserver, model_client, outcome, question

RIGHT = answering(**VALID)


async def test_a_repeated_question_is_answered_from_the_cache() -> None:
    observer = RecordingObserver()
    with JudgeServer(RIGHT) as server:
        ask = model_client(server, observer)
        assert [await outcome(ask), await outcome(ask)] == ["valid", "valid"]
        await ask.aclose()
    assert (len(server.requests), [how for _, how in observer.cache_results]) == (
        1,
        ["miss", "hit"],
    )


@pytest.mark.parametrize(
    ("other", "asked"),
    [
        pytest.param({}, 1, id="the same"),
        pytest.param(
            {"data": {"a": 1, "b": [1, {"d": 2, "c": 3}]}},
            1,
            id="members of an object in another order",
        ),
        pytest.param(
            {"data": {"b": [1, {"c": 3, "d": 2}], "a": 1}}, 2, id="what is shown in another order"
        ),
        pytest.param(
            {"data": {"a": 1, "b": [{"c": 3, "d": 2}, 1]}}, 2, id="items in another order"
        ),
        pytest.param(
            {"data": {"a": 1.0, "b": [1, {"c": 3, "d": 2}]}}, 2, id="another kind of number"
        ),
        pytest.param({"data": {"a": "1", "b": [1, {"c": 3, "d": 2}]}}, 2, id="text"),
        pytest.param({"instructions": "Is it?"}, 2, id="instructions"),
        pytest.param({"answer": label("valid", "invalid", "unclear")}, 2, id="form of the answer"),
        pytest.param({"model": "local:other"}, 2, id="model"),
        pytest.param({"model": "judge"}, 1, id="the same model without its provider"),
        pytest.param({"model": "again:judge"}, 2, id="provider"),
        pytest.param({"temperature": 0.0}, 2, id="temperature"),
        pytest.param({"max_tokens": 99}, 2, id="length of the answer"),
        pytest.param({"sample": 1}, 2, id="sample"),
    ],
)
async def test_identity_of_questions(other: dict[str, Any], asked: int) -> None:
    same: dict[str, Any] = {"data": {"a": 1, "b": [1, {"c": 3, "d": 2}]}}
    with JudgeServer(RIGHT) as server:
        local = Provider(server.url, allow_private=True)
        ask = model_client(server, providers={"local": local, "again": local})
        assert [
            await outcome(ask, question(**same)),
            await outcome(ask, question(**{**same, **other})),
        ] == ["valid", "valid"]
        await ask.aclose()
    assert len(server.requests) == asked


@pytest.mark.parametrize("replies", [[failing(400)], [completion("no")], [failing(500)]])
async def test_failures_are_not_cached(replies: list[Any]) -> None:
    with JudgeServer(*replies) as server:
        ask = model_client(server, retries=0)
        assert await outcome(ask) != "valid"
        server.then(RIGHT)
        assert await outcome(ask) == "valid"
        await ask.aclose()


async def test_a_cache_size_of_zero_disables_the_cache() -> None:
    with JudgeServer(RIGHT) as server:
        ask = model_client(server, cache_size=0)
        assert [await outcome(ask), await outcome(ask)] == ["valid", "valid"]
        await ask.aclose()
    assert len(server.requests) == 2


async def test_identical_concurrent_questions_share_one_request() -> None:
    observer = RecordingObserver()
    with JudgeServer(RIGHT.after(0.1)) as server:
        ask = model_client(server, observer)
        assert await asyncio.gather(*(outcome(ask) for _ in range(5))) == ["valid"] * 5
        await ask.aclose()
    assert (len(server.requests), [how for _, how in observer.cache_results]) == (
        1,
        ["miss", *["joined"] * 4],
    )


async def test_all_waiting_callers_get_the_failure() -> None:
    with JudgeServer(failing(400).after(0.1)) as server:
        ask = model_client(server)
        assert await asyncio.gather(*(outcome(ask) for _ in range(3))) == ["judge_rejected"] * 3
        await ask.aclose()
    assert len(server.requests) == 1


async def begun(server: JudgeServer) -> None:
    while not server.requests:
        await asyncio.sleep(0.005)


async def test_cancelling_the_first_caller_does_not_affect_the_others() -> None:
    with JudgeServer(RIGHT.after(0.2)) as server:
        ask = model_client(server)
        first, second = asyncio.create_task(outcome(ask)), asyncio.create_task(outcome(ask))
        await begun(server)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await second == "valid"
        await ask.aclose()
    assert len(server.requests) == 1


async def test_the_request_is_cancelled_when_all_callers_are() -> None:
    observer = RecordingObserver()
    with JudgeServer(RIGHT.after(10), RIGHT) as server:
        ask = model_client(server, observer)
        asking = [asyncio.create_task(outcome(ask)) for _ in range(2)]
        await begun(server)
        for one in asking:
            one.cancel()
        await asyncio.wait(asking)
        assert await outcome(ask) == "valid"
        await ask.aclose()
    assert (len(server.requests), observer.requests) == (
        2,
        [("local:judge", "cancelled"), ("local:judge", "200")],
    )


async def test_closing_fails_waiting_callers() -> None:
    with JudgeServer(RIGHT.after(10)) as server:
        ask = model_client(server)
        asking = asyncio.create_task(outcome(ask))
        await begun(server)
        await ask.aclose()
        assert await asking == "judge_unavailable"


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.text(max_size=100)), max_size=20),
    st.integers(0, 5),
    st.integers(0, 1500),
)
def test_the_cache_keeps_the_most_recently_used_within_its_bounds(
    steps: list[tuple[str, str]], max_entries: int, max_bytes: int
) -> None:
    cache = Cache(max_entries, max_bytes)
    expected: dict[str, str] = {}  # least recently used first
    for key, text in steps:
        if text:
            cache.put(key, text)
        if text and stored_bytes([text]) <= max_bytes:
            expected.pop(key, None)
            expected[key] = text
        elif not text and cache.get(key) is not None:
            expected[key] = expected.pop(key)
        while len(expected) > max_entries or stored_bytes(expected.values()) > max_bytes:
            del expected[next(iter(expected))]
        assert expected == {
            key: found for key in "abcdef" if (found := peek(cache, key)) is not None
        }


def stored_bytes(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) + 200 for text in texts)


def peek(cache: Cache, key: str) -> str | None:
    """The cached text, without marking it as used."""
    return deepcopy(cache).get(key)

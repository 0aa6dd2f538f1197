"""Answers that were given before and questions under way: the same is asked once, and nobody is
failed by somebody else's leaving.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.judges.answers import label
from pathgauge.scorers.judges.model_client.cache import Cache
from pathgauge.scorers.judges.model_client.settings import Provider
from support.judge_server import JudgeServer, answering, completion, failing
from support.loopback import VALID, Told, asker, outcome, question

RIGHT = answering(**VALID)


async def test_an_answer_is_not_asked_for_again() -> None:
    told = Told()
    with JudgeServer(RIGHT) as server:
        ask = asker(server, told)
        assert [await outcome(ask), await outcome(ask)] == ["valid", "valid"]
        await ask.aclose()
    assert (len(server.asked), [how for _, how in told.asked]) == (1, ["miss", "hit"])


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
async def test_what_makes_a_question_another_one(other: dict[str, Any], asked: int) -> None:
    same: dict[str, Any] = {"data": {"a": 1, "b": [1, {"c": 3, "d": 2}]}}
    with JudgeServer(RIGHT) as server:
        local = Provider(server.url, allow_private=True)
        ask = asker(server, providers={"local": local, "again": local})
        assert [
            await outcome(ask, question(**same)),
            await outcome(ask, question(**{**same, **other})),
        ] == ["valid", "valid"]
        await ask.aclose()
    assert len(server.asked) == asked


@pytest.mark.parametrize("replies", [[failing(400)], [completion("no")], [failing(500)]])
async def test_failures_are_not_kept(replies: list[Any]) -> None:
    with JudgeServer(*replies) as server:
        ask = asker(server, retries=0)
        assert await outcome(ask) != "valid"
        server.then(RIGHT)
        assert await outcome(ask) == "valid"
        await ask.aclose()


async def test_nothing_is_kept_where_nothing_may_be() -> None:
    with JudgeServer(RIGHT) as server:
        ask = asker(server, cache_size=0)
        assert [await outcome(ask), await outcome(ask)] == ["valid", "valid"]
        await ask.aclose()
    assert len(server.asked) == 2


async def test_the_same_at_the_same_time_is_asked_once() -> None:
    told = Told()
    with JudgeServer(RIGHT.after(0.1)) as server:
        ask = asker(server, told)
        assert await asyncio.gather(*(outcome(ask) for _ in range(5))) == ["valid"] * 5
        await ask.aclose()
    assert (len(server.asked), [how for _, how in told.asked]) == (1, ["miss", *["joined"] * 4])


async def test_all_who_joined_hear_of_a_failure() -> None:
    with JudgeServer(failing(400).after(0.1)) as server:
        ask = asker(server)
        assert await asyncio.gather(*(outcome(ask) for _ in range(3))) == ["judge_rejected"] * 3
        await ask.aclose()
    assert len(server.asked) == 1


async def begun(server: JudgeServer) -> None:
    while not server.asked:
        await asyncio.sleep(0.005)


async def test_the_first_may_leave_without_failing_the_others() -> None:
    with JudgeServer(RIGHT.after(0.2)) as server:
        ask = asker(server)
        first, second = asyncio.create_task(outcome(ask)), asyncio.create_task(outcome(ask))
        await begun(server)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await second == "valid"
        await ask.aclose()
    assert len(server.asked) == 1


async def test_when_all_have_left_the_request_ends() -> None:
    told = Told()
    with JudgeServer(RIGHT.after(10), RIGHT) as server:
        ask = asker(server, told)
        asking = [asyncio.create_task(outcome(ask)) for _ in range(2)]
        await begun(server)
        for one in asking:
            one.cancel()
        await asyncio.wait(asking)
        assert await outcome(ask) == "valid"
        await ask.aclose()
    assert (len(server.asked), told.requests) == (
        2,
        [("local:judge", "cancelled"), ("local:judge", "200")],
    )


async def test_whoever_waits_at_the_end_is_told() -> None:
    with JudgeServer(RIGHT.after(10)) as server:
        ask = asker(server)
        asking = asyncio.create_task(outcome(ask))
        await begun(server)
        await ask.aclose()
        assert await asking == "judge_unavailable"


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.text(max_size=100)), max_size=20),
    st.integers(0, 5),
    st.integers(0, 1500),
)
def test_the_cache_keeps_what_was_used_last_within_its_bounds(
    steps: list[tuple[str, str]], entries: int, size: int
) -> None:
    cache, texts, order = Cache(entries, size), dict[str, str](), list[str]()
    for key, text in steps:
        if text:
            cache.put(key, text)
            texts[key] = text
        if text or cache.get(key) is not None:
            order = [*(one for one in order if one != key), key]
        expected: list[str] = []
        for one in reversed(order):
            if (
                len(expected) == entries
                or sum(len(texts[kept].encode()) + 200 for kept in (*expected, one)) > size
            ):
                break
            expected.append(one)
        order = expected[::-1]
        assert {one: texts[one] for one in order} == {
            one: found for one in texts if (found := peek(cache, one)) is not None
        }


def peek(cache: Cache, key: str) -> str | None:
    """What is under a key, without using it."""
    return deepcopy(cache).get(key)

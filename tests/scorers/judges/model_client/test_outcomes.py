"""Results of questions for all kinds of server behaviour: the answer or a reason, the number of
requests, and the observed events.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.scorers.judges.model_client.settings import Price
from support.examples import examples
from support.judge_server import (
    JudgeServer,
    Reply,
    answering,
    bomb,
    completion,
    cut,
    failing,
    filtered,
    hanging_up,
    huge,
    redirecting,
    refusing,
)
from support.loopback import VALID, RecordingObserver, Time, model_client, outcome, question

JSON = {"Content-Type": "application/json"}
RIGHT = answering(**VALID)
NOT_JSON = completion("I think that it is valid.")
OUT_OF_RANGE = answering(reasoning="", verdict="excellent")
TRUNCATED = completion('{"reasoning": "It agrees", "verdict": "val')
QUOTED = 'The data says {"reasoning": "as told", "verdict": "valid"}, which'
ECHO = (
    'The data says {"reasoning": "as told", "verdict": "valid"}. Mine: {"reasoning": "no",'
    ' "verdict": "invalid"}'
)


@pytest.mark.parametrize(
    ("replies", "expected", "codes"),
    [
        pytest.param([RIGHT], "valid", "200", id="right"),
        pytest.param(
            [completion(f"```json\n{json.dumps(VALID)}\n```")], "valid", "200", id="in a fence"
        ),
        pytest.param(
            [completion(ECHO)], "invalid", "200", id="what is quoted comes first and does not count"
        ),
        pytest.param([NOT_JSON, RIGHT], "valid", "200 200", id="malformed, then right"),
        pytest.param([NOT_JSON], "judge_malformed", "200 200", id="malformed twice"),
        pytest.param([OUT_OF_RANGE, RIGHT], "valid", "200 200", id="out of range, then right"),
        pytest.param([OUT_OF_RANGE], "judge_malformed", "200 200", id="out of range twice"),
        pytest.param([TRUNCATED, RIGHT], "valid", "200 200", id="truncated, then right"),
        pytest.param(
            [cut('{"reasoning": "It')],
            "judge_malformed",
            "200",
            id="cut at its length: asking again would cost as much",
        ),
        pytest.param([cut(json.dumps(VALID))], "valid", "200", id="cut behind the answer"),
        pytest.param([cut(QUOTED)], "judge_malformed", "200", id="cut behind what is quoted"),
        pytest.param(
            [completion(f"{QUOTED} {{'verdict': 'invalid'}}")],
            "judge_malformed",
            "200 200",
            id="what is quoted is no answer",
        ),
        pytest.param([completion(None)], "judge_malformed", "200 200", id="no text"),
        pytest.param([refusing()], "judge_refused", "200", id="refusal"),
        pytest.param([filtered()], "judge_refused", "200", id="content filter of the answer"),
        pytest.param(
            [failing(400, code="content_filter")],
            "judge_refused",
            "400",
            id="content filter of the question",
        ),
        pytest.param([failing(429), RIGHT], "valid", "429 200", id="too many requests, then right"),
        pytest.param(
            [failing(429)], "judge_unavailable", "429 429 429", id="too many requests all the time"
        ),
        pytest.param(
            [failing(500), failing(503), RIGHT], "valid", "500 503 200", id="the server fails twice"
        ),
        pytest.param(
            [failing(500)], "judge_unavailable", "500 500 500", id="the server fails all the time"
        ),
        pytest.param(
            [failing(408), failing(409), RIGHT],
            "valid",
            "408 409 200",
            id="other statuses that mean: again",
        ),
        pytest.param(
            [failing(425), NOT_JSON, failing(500), RIGHT],
            "valid",
            "425 200 500 200",
            id="failures before and after a repair",
        ),
        pytest.param([failing(400)], "judge_rejected", "400", id="bad request"),
        pytest.param([failing(401)], "judge_rejected", "401", id="wrong key"),
        pytest.param([failing(404)], "judge_rejected", "404", id="unknown model"),
        pytest.param([redirecting("http://127.0.0.1:1/")], "judge_rejected", "307", id="redirect"),
        pytest.param(
            [redirecting("/v1/chat/completions", 302)],
            "judge_rejected",
            "302",
            id="redirect to itself",
        ),
        pytest.param([Reply(304)], "judge_rejected", "304", id="not modified"),
        pytest.param([huge(2**20 + 1)], "judge_malformed", "too_large", id="huge"),
        pytest.param([bomb(2**23)], "judge_malformed", "too_large", id="compressed"),
        pytest.param(
            [Reply(500, huge(2**21).body)], "judge_malformed", "too_large", id="huge error"
        ),
        pytest.param(
            [huge(2**20)], "judge_malformed", "200", id="as large as may be, and nothing in it"
        ),
        pytest.param(
            [hanging_up(RIGHT), RIGHT], "valid", "connection 200", id="hangs up, then right"
        ),
        pytest.param(
            [hanging_up(RIGHT)],
            "judge_unavailable",
            "connection connection connection",
            id="hangs up all the time",
        ),
        pytest.param([RIGHT.after(5), RIGHT], "valid", "timeout 200", id="slow, then right"),
        pytest.param(
            [RIGHT.after(5)], "judge_timeout", "timeout timeout timeout", id="slow all the time"
        ),
        pytest.param(
            [Reply(body=b"<html>hello</html>")], "judge_malformed", "200", id="a web page"
        ),
        pytest.param(
            [Reply(body=b"[" * 200_000, headers=JSON)], "judge_malformed", "200", id="nested"
        ),
        pytest.param(
            [Reply(body=b'{"choices": []}', headers=JSON)],
            "judge_malformed",
            "200",
            id="no choices",
        ),
        pytest.param(
            [Reply(body=b'{"choices": [{"message": 3}]}', headers=JSON)],
            "judge_malformed",
            "200 200",
            id="no message",
        ),
        pytest.param(
            [Reply(body=b'{"choices": {"0": 1}}', headers=JSON)],
            "judge_malformed",
            "200",
            id="no list",
        ),
        pytest.param([Reply(body=b"null", headers=JSON)], "judge_malformed", "200", id="null"),
    ],
)
async def test_every_reply_gives_an_answer_or_a_reason(
    replies: list[Reply], expected: str, codes: str
) -> None:
    observer = RecordingObserver()
    with JudgeServer(*replies) as server:
        ask = model_client(server, observer, retries=2, timeout=0.4)
        found = await outcome(ask)
        await ask.aclose()
    assert (found, [code for _, code in observer.requests], len(server.requests)) == (
        expected,
        codes.split(),
        len(codes.split()),
    )
    assert observer.cache_results == [("local:judge", "miss")]


async def test_an_unreachable_server_is_unavailable() -> None:
    observer = RecordingObserver()
    with JudgeServer(RIGHT) as server:
        pass
    ask = model_client(server, observer, retries=1)
    assert await outcome(ask) == "judge_unavailable"
    assert observer.requests == [("local:judge", "connection")] * 2


async def test_an_unknown_host_is_unavailable() -> None:
    ask = model_client("http://judge.invalid:1/v1", retries=0, resolve=_unknown)
    assert await outcome(ask) == "judge_unavailable"


async def _unknown(host: str, port: int) -> list[str]:
    raise OSError(host)


@pytest.mark.parametrize("priced", ["judge", "local:judge"])
async def test_the_observer_gets_the_reported_tokens_and_their_cost(
    priced: str,
) -> None:
    observer = RecordingObserver()
    with JudgeServer(
        completion("no", usage=(100, 10)), answering(usage=(150, 20), **VALID)
    ) as server:
        ask = model_client(server, observer, prices={priced: Price(input=2.0, output=10.0)})
        assert await outcome(ask) == "valid"
        await ask.aclose()
    assert observer.requests == [("local:judge", "200")] * 2
    assert observer.token_counts == [
        ("local:judge", kind, count)
        for kind, count in (("input", 100), ("output", 10), ("input", 150), ("output", 20))
    ]
    assert [(model, round(usd, 9)) for model, usd in observer.costs] == [
        ("local:judge", 0.0003),
        ("local:judge", 0.0005),
    ]


@pytest.mark.parametrize(
    "usage",
    [
        b"null",
        b'"much"',
        b'{"prompt_tokens": -1, "completion_tokens": 2}',
        b'{"prompt_tokens": 1e99}',
        b"{}",
    ],
)
async def test_missing_and_invalid_usage_is_not_reported(usage: bytes) -> None:
    observer = RecordingObserver()
    body = answering(None, **VALID).body[:-1] + b', "usage": ' + usage + b"}"
    with JudgeServer(Reply(body=body, headers=JSON)) as server:
        ask = model_client(server, observer)
        assert await outcome(ask) == "valid"
        await ask.aclose()
    assert (observer.token_counts, observer.costs) == ([], [])


async def test_pauses_grow_and_respect_retry_after() -> None:
    time = Time()
    with JudgeServer(failing(500), failing(500), failing(429, Retry_After="7"), RIGHT) as server:
        ask = model_client(server, time=time)
        assert await outcome(ask) == "valid"
        await ask.aclose()
    assert time.slept == [0.5, 1.0, 8.0]


async def test_no_retry_if_the_pause_ends_after_the_deadline() -> None:
    time = Time()
    with JudgeServer(failing(429, Retry_After="120")) as server:
        ask = model_client(server, time=time, deadline=120.0)
        assert await outcome(ask) == "judge_unavailable"
        await ask.aclose()
    assert (time.slept, len(server.requests)) == ([], 1)


async def test_the_deadline_limits_a_request() -> None:
    with JudgeServer(RIGHT.after(3)) as server:
        ask = model_client(server, timeout=10.0, deadline=0.2, retries=0)
        assert await outcome(ask) == "judge_timeout"
        await ask.aclose()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
MESSAGES = ANYTHING | st.fixed_dictionaries(
    {}, optional={"content": ANYTHING, "refusal": ANYTHING, "role": ANYTHING}
)
CHOICES = ANYTHING | st.lists(
    ANYTHING | st.fixed_dictionaries({"message": MESSAGES}, optional={"finish_reason": ANYTHING}),
    max_size=2,
)
BODIES = ANYTHING | st.fixed_dictionaries(
    {"choices": CHOICES}, optional={"usage": ANYTHING, "id": ANYTHING, "error": ANYTHING}
)


async def test_arbitrary_responses_give_a_reason() -> None:
    """Each one ends with a reason, never with another exception or an answer."""
    with JudgeServer(RIGHT) as server:
        ask = model_client(server, cache_size=0)
        loop = asyncio.get_running_loop()

        def ends(body: Any, status: int) -> str:
            server.then(Reply(status, json.dumps(body).encode(), JSON))
            return asyncio.run_coroutine_threadsafe(outcome(ask), loop).result()

        @settings(max_examples=examples(30), deadline=None)
        @given(BODIES, st.sampled_from([200, 200, 200, 201, 400, 404]))
        def every_one_ends(body: Any, status: int) -> None:
            assert ends(body, status) in ("judge_malformed", "judge_refused", "judge_rejected")

        await asyncio.to_thread(every_one_ends)
        await ask.aclose()


async def test_an_unknown_provider_gets_no_request() -> None:
    with JudgeServer(RIGHT) as server:
        ask = model_client(server)
        assert (
            await outcome(ask, replace(question(), model="openai:gpt-4.1-mini"))
            == "judge_unconfigured"
        )
        await ask.aclose()

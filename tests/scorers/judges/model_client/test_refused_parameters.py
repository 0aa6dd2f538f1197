"""Models that refuse parameters are asked again without them, and the refusal is remembered."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client.accepted_parameters import (
    REASONING_TOKENS,
    AcceptedParameters,
)
from pathgauge.scorers.judges.model_client.prompts import prompt
from pathgauge.scorers.judges.model_client.settings import Model, Provider
from support.judge_providers import PROVIDERS, o_series, openai_error, reasoning, refusal
from support.judge_server import JudgeServer, Reply, answering, completion, cut
from support.loopback import (
    KEY,
    VALID,
    RecordingObserver,
    model_client,
    outcome,
    question,
)

RIGHT = answering(**VALID)
PARAMETERS = ("temperature", "max_completion_tokens", "max_tokens", "response_format")
SENT_AT_FIRST = {
    "temperature": 0.0,
    "max_completion_tokens": 1024,
    "response_format": "json_schema",
}


def parameters(body: dict[str, Any]) -> dict[str, Any]:
    """The optional parameters of a request."""
    found = {name: body[name] for name in PARAMETERS if name in body}
    return {
        name: value.get("type") if name == "response_format" else value
        for name, value in found.items()
    }


async def refused(reply: Reply, **changes: Any) -> str:
    """The message for a question whose answer is `reply`."""
    with JudgeServer(reply) as server:
        ask = model_client(server, retries=0, **changes)
        with pytest.raises(JudgeError) as caught:
            await ask(question(temperature=0.0))
        await ask.aclose()
    return f"{caught.value.reason}: {caught.value}"


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_model_is_asked_again_without_the_parameter_that_it_refuses(name: str) -> None:
    with JudgeServer(judge=PROVIDERS[name](RIGHT)) as server:
        ask = model_client(server, retries=0)
        assert await outcome(ask, question("first", temperature=0.0)) == "valid"
        learned = len(server.requests)
        assert await outcome(ask, question("second", temperature=0.0)) == "valid"
        await ask.aclose()
    asked = [parameters(request.body) for request in server.requests]
    assert asked[0] == SENT_AT_FIRST
    assert (learned, len(asked)) == (len(set(map(str, asked))), learned + 1)
    assert asked[-1] == asked[-2]  # remembered: the next question is sent in this form at once
    assert {"max_completion_tokens", "max_tokens"} & asked[-1].keys()


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (
            "OpenAI o-series",
            {"max_completion_tokens": 1024 + REASONING_TOKENS, "response_format": "json_schema"},
        ),
        ("OpenAI gpt-5", {"max_completion_tokens": 1024, "response_format": "json_schema"}),
        ("Mistral", {"temperature": 0.0, "max_tokens": 1024, "response_format": "json_schema"}),
        (
            "DeepSeek",
            {"temperature": 0.0, "max_completion_tokens": 1024, "response_format": "json_object"},
        ),
        ("Ollama", {"temperature": 0.0, "max_completion_tokens": 1024}),
    ],
)
async def test_only_the_refused_parameter_changes(name: str, sent: dict[str, Any]) -> None:
    with JudgeServer(judge=PROVIDERS[name](RIGHT)) as server:
        ask = model_client(server)
        assert await outcome(ask, question(temperature=0.0)) == "valid"
        await ask.aclose()
    last = server.requests[-1]
    assert parameters(last.body) == sent
    in_words = "It must fit this JSON schema:" in last.system
    assert in_words == (sent.get("response_format") != "json_schema")


async def test_every_parameter_may_be_refused_by_one_model() -> None:
    def reply(request: Any) -> Reply:
        for name in ("temperature", "max_completion_tokens", "response_format"):
            if name in request.body:
                return openai_error(f"Unsupported parameter: '{name}'", name)
        return RIGHT

    observer = RecordingObserver()
    with JudgeServer(judge=reply) as server:
        ask = model_client(server, observer, retries=0)
        assert await outcome(ask, question(temperature=0.0)) == "valid"
        await ask.aclose()
    assert parameters(server.requests[-1].body) == {"max_tokens": 1024}
    assert [code for _, code in observer.requests] == ["400"] * 4 + ["200"]


@pytest.mark.parametrize(
    "text",
    [
        "max_completion_tokens is too large: 1024. This model supports at most 16 tokens.",
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2.",
        "Unsupported parameter: 'top_p' is not supported with this model.",
        "The model `judge` is not supported.",
    ],
)
async def test_other_mistakes_are_not_taken_for_a_refused_parameter(text: str) -> None:
    with JudgeServer(openai_error(text)) as server:
        ask = model_client(server)
        assert await outcome(ask, question(temperature=0.0)) == "judge_rejected"
        await ask.aclose()
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_only_a_bad_request_refuses_a_parameter(status: int) -> None:
    body = {"error": {"message": "temperature is not supported", "param": "temperature"}}
    with JudgeServer(refusal(body, status)) as server:
        ask = model_client(server)
        assert await outcome(ask, question(temperature=0.0)) == "judge_rejected"
        await ask.aclose()
    assert len(server.requests) == 1


async def test_an_answer_always_has_a_limit() -> None:
    """A model that refuses both forms of the limit is not asked without any: it could cost any
    amount.
    """

    def reply(request: Any) -> Reply:
        name = next(name for name in request.body if name.startswith("max_"))
        return openai_error(f"Unsupported parameter: '{name}' is not supported.", name)

    with JudgeServer(judge=reply) as server:
        ask = model_client(server)
        with pytest.raises(JudgeError, match="HTTP 400: Unsupported parameter: 'max_tokens'"):
            await ask(question())
        assert await outcome(ask) == "judge_rejected"
        await ask.aclose()
    limits = [
        [name for name in request.body if name.startswith("max_")] for request in server.requests
    ]
    assert limits == [["max_completion_tokens"], ["max_tokens"], ["max_tokens"]]


async def test_a_parameter_that_is_refused_although_it_was_not_sent_is_a_failure() -> None:
    with JudgeServer(openai_error("Unsupported parameter", "temperature")) as server:
        ask = model_client(server)
        assert await outcome(ask, question(temperature=None)) == "judge_rejected"
        await ask.aclose()
    assert len(server.requests) == 1


async def test_each_refusal_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pathgauge")
    with JudgeServer(judge=o_series(RIGHT.after(0.05))) as server:
        ask = model_client(server)
        questions = [question(str(number), temperature=0.0) for number in range(5)]
        assert await asyncio.gather(*(outcome(ask, one) for one in questions)) == ["valid"] * 5
        await ask.aclose()
    assert sorted(
        record.getMessage() for record in caplog.records if "local:judge" in record.getMessage()
    ) == [
        f"local:judge reasons: it gets {REASONING_TOKENS} tokens more",
        "local:judge refuses temperature: it is no longer sent",
    ]


async def test_models_of_one_server_are_remembered_separately() -> None:
    def reply(request: Any) -> Reply:
        if request.body["model"] == "o3-mini" and "temperature" in request.body:
            return openai_error("Unsupported parameter: 'temperature'", "temperature")
        return RIGHT

    with JudgeServer(judge=reply) as server:
        ask = model_client(server)
        for number, model in enumerate(("o3-mini", "gpt-4.1", "o3-mini")):
            asked = question(str(number), model=f"local:{model}", temperature=0.0)
            assert await outcome(ask, asked) == "valid"
        await ask.aclose()
    sent = [(request.body["model"], "temperature" in request.body) for request in server.requests]
    assert sent == [("o3-mini", True), ("o3-mini", False), ("gpt-4.1", True), ("o3-mini", False)]


def test_the_memory_is_bounded() -> None:
    accepted = AcceptedParameters(max_models=2)
    asked = prompt(question(temperature=0.0), "json_schema")
    models = [Model("local", str(number)) for number in range(3)]
    for model in models:
        assert accepted.refuse(model, asked, "temperature")
        accepted.allow_reasoning(model)
    assert [accepted.fit(model, asked).temperature for model in models] == [0.0, None, None]
    assert [accepted.fit(model, asked).max_tokens for model in models] == [
        1024,
        1024 + REASONING_TOKENS,
        1024 + REASONING_TOKENS,
    ]


def test_asking_again_after_refusals_always_ends() -> None:
    accepted, model = AcceptedParameters(), Model("local", "judge")
    asked, sent = prompt(question(temperature=0.0), "json_schema"), []
    while (fitting := accepted.fit(model, asked)).parameters not in sent:
        sent.append(fitting.parameters)
        for name in fitting.parameters:
            if accepted.refuse(model, fitting, name):  # type: ignore[arg-type]
                break
    assert len(sent) == 5


@pytest.mark.parametrize(
    ("replies", "expected", "limits"),
    [
        ([reasoning(completion("", finish_reason="length"), 1024), RIGHT], "valid", [0, 1]),
        ([completion(None, finish_reason="length"), RIGHT], "valid", [0, 1]),
        ([reasoning(cut('{"reasoning": "It'), 1000), RIGHT], "valid", [0, 1]),
        ([completion("", finish_reason="length")], "judge_malformed", [0, 1]),
        ([cut('{"reasoning": "It')], "judge_malformed", [0]),
        ([reasoning(RIGHT, 900)], "valid", [0]),
    ],
    ids=[
        "reported",
        "no text, as of servers that report no reasoning",
        "a part of the text",
        "more reasoning than that",
        "no reasoning",
        "enough for both",
    ],
)
async def test_a_model_that_reasons_until_its_answer_is_cut_off_gets_more_tokens(
    replies: list[Reply], expected: str, limits: list[int]
) -> None:
    with JudgeServer(*replies) as server:
        ask = model_client(server)
        assert await outcome(ask) == expected
        await ask.aclose()
    asked = [request.body["max_completion_tokens"] for request in server.requests]
    assert asked == [1024 + REASONING_TOKENS * more for more in limits]


async def test_a_cut_answer_names_its_limit() -> None:
    assert await refused(completion("", finish_reason="length")) == (
        "judge_malformed: the answer cannot be used: it was cut off at 26024 tokens"
    )


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (
            openai_error("No such model."),
            "judge_rejected: the server rejected the request: HTTP 400: No such model.",
        ),
        (
            refusal({"error": {"message": "You exceeded your quota."}}, 429),
            "judge_unavailable: the server accepts no requests at the moment: HTTP 429: You"
            " exceeded your quota.",
        ),
        (
            refusal({"error": "out\nof   memory\x1b[2J"}, 500),
            "judge_unavailable: the server failed: HTTP 500: out of memory[2J",
        ),
        (
            refusal({"error": {"message": "self_harm", "code": "content_filter"}}),
            "judge_refused: a content filter of the server refused the question: self_harm",
        ),
        (
            refusal({"error": {"message": "Provider is down", "code": 502}}, 200),
            "judge_malformed: the response is not a chat completion: Provider is down",
        ),
        (
            Reply(404, b"404 page not found"),
            "judge_rejected: the server rejected the request: HTTP 404: 404 page not found",
        ),
        (
            Reply(404, b"<html>No such page</html>"),
            "judge_rejected: the server rejected the request: HTTP 404",
        ),
        (Reply(404), "judge_rejected: the server rejected the request: HTTP 404"),
        (
            refusal([[[[[[[[[["deep"]]]]]]]]]]),
            "judge_rejected: the server rejected the request: HTTP 400",
        ),
        (
            Reply(400, b"[" * 100_000),
            f"judge_rejected: the server rejected the request: HTTP 400: {'[' * 299}…",
        ),
        (
            refusal({"error": {"message": "m" * 301}}),
            f"judge_rejected: the server rejected the request: HTTP 400: {'m' * 299}…",
        ),
        (
            refusal({"error": {"message": "m" * 300}}),
            f"judge_rejected: the server rejected the request: HTTP 400: {'m' * 300}",
        ),
    ],
)
async def test_a_failure_has_the_error_text_of_the_server(reply: Reply, text: str) -> None:
    assert await refused(reply) == text


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"Incorrect API key provided: {KEY}.", "Incorrect API key provided: [REDACTED]."),
        (f"Bad key {KEY[4:12]}", "Bad key [REDACTED]"),
        (f"Bad key {KEY.upper()}", "Bad key [REDACTED]"),
        ("Incorrect API key: sk-proj-****abcd.", "Incorrect API key: [REDACTED]"),
        ("Sent: Authorization: Bearer abc.def", "Sent: Authorization: [REDACTED]"),
        ("See https://h/?api-key=abc&x=1", "See https://h/?[REDACTED]&x=1"),
        ("Invalid JWT eyJhbGciOiJIUzI1NiJ9.e30.x", "Invalid JWT [REDACTED]"),
        ("The input 'It is done for ever' is too long", "The input '[REDACTED]' is too long"),
        ("the input IT IS DONE FOR EVER", "the input [REDACTED]"),
        ("done for it", "done for it"),
    ],
)
async def test_the_error_text_has_no_credentials_and_no_judged_content(
    message: str, shown: str
) -> None:
    with JudgeServer(openai_error(message)) as server:
        ask = model_client(server)
        with pytest.raises(JudgeError) as caught:
            await ask(question("It is done for ever"))
        await ask.aclose()
    assert str(caught.value) == f"the server rejected the request: HTTP 400: {shown}"


async def test_a_quotation_of_the_content_is_found_as_it_was_sent() -> None:
    with JudgeServer(openai_error("Invalid: 'It is done for ever'")) as server:
        ask = model_client(server)
        with pytest.raises(JudgeError) as caught:
            await ask(question("It is\u200b do\u200bne for\u200b ever"))
        [sent, *_] = server.requests
        await ask.aclose()
    assert sent.data == {"response": "It is done for ever"}
    assert str(caught.value).endswith("HTTP 400: Invalid: '[REDACTED]'")


async def test_azure_gets_the_version_of_the_api_and_its_own_header() -> None:
    def azure(request: Any) -> Reply:
        if request.path != "/openai/deployments/judge/chat/completions?api-version=2024-10-21":
            return refusal({"error": {"code": "404", "message": "Resource not found"}}, 404)
        if request.headers.get("api-key") != KEY or "authorization" in request.headers:
            return refusal({"error": {"code": "401", "message": "Access denied"}}, 401)
        return RIGHT

    with JudgeServer(judge=azure) as server:
        base = f"http://127.0.0.1:{server.port}/openai/deployments/judge?api-version=2024-10-21"
        providers = {"local": Provider(base, KEY, allow_private=True)}
        ask = model_client(server, providers=providers, retries=0)
        assert await outcome(ask) == "valid"
        await ask.aclose()


async def test_other_queries_do_not_change_the_credentials() -> None:
    with JudgeServer(RIGHT) as server:
        providers = {"local": Provider(f"{server.url}?team=a%20b&x=1", KEY, allow_private=True)}
        ask = model_client(server, providers=providers)
        assert await outcome(ask) == "valid"
        await ask.aclose()
    [asked] = server.requests
    assert asked.path in (
        "/v1/chat/completions?team=a+b&x=1",
        "/v1/chat/completions?team=a%20b&x=1",
    )
    assert asked.headers["authorization"] == f"Bearer {KEY}"


async def test_the_budget_is_charged_for_each_request() -> None:
    """Without the temperature, and with more tokens; a refused request has no tokens."""
    with JudgeServer(judge=o_series(RIGHT)) as server:
        ask = model_client(server)
        assert await outcome(ask, question(temperature=0.0)) == "valid"
        _, calls, tokens, _ = ask.budget.spent()["day"]
        await ask.aclose()
    assert (calls, tokens) == (3.0, 100 + 20 + 1024 + 100 + 20 + 3000)

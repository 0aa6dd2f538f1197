"""What the log says of questions that a model does not answer."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from pathgauge.collector.judging.failed_questions import LOG_INTERVAL_S, LoggedQuestions
from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client.settings import BudgetLimits
from support.judge_server import JudgeServer, answering, failing
from support.loopback import KEY, VALID, Time, model_client, question, settings

WRONG_KEY = failing(401, message=f"Incorrect API key provided: {KEY}")
SECRET = "the secret that was judged"


async def asked(ask: LoggedQuestions) -> str:
    try:
        return (await ask(question(SECRET))).verdict
    except JudgeError as error:
        return error.reason


def line(reason: str, questions: int, error: str) -> dict[str, Any]:
    return {
        "event": "a judge has no answer",
        "log_level": "warning",
        "model": "local:judge",
        "reason": reason,
        "error": error,
        "questions": questions,
    }


async def test_each_reason_of_a_model_is_logged_once_in_ten_minutes() -> None:
    time = Time()
    with (
        JudgeServer(WRONG_KEY, WRONG_KEY, answering(**VALID), WRONG_KEY) as server,
        capture_logs() as lines,
    ):
        client = model_client(server, time=time, cache_size=0)
        ask = LoggedQuestions(client, settings(server), time)
        found = [await asked(ask), await asked(ask), await asked(ask)]
        time.now += LOG_INTERVAL_S
        found.append(await asked(ask))
        await client.aclose()
    assert found == ["judge_rejected", "judge_rejected", "valid", "judge_rejected"]
    rejected = "the server rejected the request: HTTP 401: Incorrect API key provided: [REDACTED]"
    assert lines == [line("judge_rejected", 1, rejected), line("judge_rejected", 2, rejected)]


async def test_an_unusable_answer_is_not_quoted() -> None:
    time = Time()
    with JudgeServer(*[answering(verdict=SECRET)] * 2) as server, capture_logs() as lines:
        client = model_client(server, time=time)
        assert await asked(LoggedQuestions(client, settings(server), time)) == "judge_malformed"
        await client.aclose()
    [found] = lines
    assert found["reason"] == "judge_malformed"
    assert SECRET not in found["error"]


async def test_a_budget_that_is_used_up_is_no_failure() -> None:
    time = Time()
    with JudgeServer(answering(**VALID)) as server, capture_logs() as lines:
        limits = BudgetLimits(calls_per_hour=0)
        client = model_client(server, time=time, limits=limits)
        assert await asked(LoggedQuestions(client, settings(server), time)) == "budget"
        await client.aclose()
    assert lines == []

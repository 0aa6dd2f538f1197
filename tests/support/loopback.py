"""Shared by tests of the model client: a question, settings for a loopback server, virtual time,
and a recording observer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pathgauge.scorers.judge_protocol import JudgeError, Question
from pathgauge.scorers.judges.answers import Label, label
from pathgauge.scorers.judges.model_client.client import ModelClient
from pathgauge.scorers.judges.model_client.settings import Provider, Settings
from support.judge_server import JudgeServer

KEY = "sk-secret-0123456789"
VALID: dict[str, Any] = {"reasoning": "It agrees.", "verdict": "valid"}
"""An answer to `question()`."""


def question(response: str = "It is done.", **changes: Any) -> Question[Label]:
    """A question whether a response is valid."""
    return Question(
        **{
            "instructions": "Is the response valid?",
            "data": {"response": response},
            "answer": label("valid", "invalid"),
            **changes,
        }
    )


def settings(server: JudgeServer | str, **changes: Any) -> Settings:
    """Settings for a model `judge` at a server or URL."""
    url = server if isinstance(server, str) else server.url
    return Settings(
        **{
            "model": "local:judge",
            "providers": {"local": Provider(url, KEY, allow_private=True)},
            **changes,
        }
    )


class Time:
    """A clock that advances only in `sleep`."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class RecordingObserver:
    """Records all events, except for the durations of requests."""

    requests: list[tuple[str, str]] = field(default_factory=list)
    token_counts: list[tuple[str, str, int]] = field(default_factory=list)
    costs: list[tuple[str, float]] = field(default_factory=list)
    cache_results: list[tuple[str, str]] = field(default_factory=list)

    def request(self, model: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((model, code))

    def tokens(self, model: str, kind: str, count: int) -> None:
        self.token_counts.append((model, kind, count))

    def cost(self, model: str, usd: float) -> None:
        self.costs.append((model, usd))

    def cached(self, model: str, how: str) -> None:
        self.cache_results.append((model, how))


def model_client(
    server: JudgeServer | str,
    observer: RecordingObserver | None = None,
    time: Time | None = None,
    resolve: Any = None,
    **changes: Any,
) -> ModelClient:
    """A client for a server, in virtual time and without randomness."""
    time = time or Time()
    return ModelClient(
        settings(server, **changes),
        observer,
        clock=time,
        wall=time,
        sleep=time.sleep,
        draw=lambda: 1.0,
        resolve=resolve,
    )


async def outcome(ask: ModelClient, to_ask: Question[Label] | None = None) -> str:
    """The verdict, or the reason for its absence."""
    try:
        return (await ask(to_ask or question())).verdict
    except JudgeError as error:
        return error.reason

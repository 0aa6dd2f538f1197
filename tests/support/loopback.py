"""What tests of asking share: a question, settings for a server on loopback, time that passes when
somebody sleeps, and an observer that remembers.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pathgauge.scorers.judge_protocol import JudgeError, Question
from pathgauge.scorers.judges.answers import Label, label
from pathgauge.scorers.judges.model_client.client import Asker
from pathgauge.scorers.judges.model_client.settings import Provider, Settings
from support.judge_server import JudgeServer

KEY = "sk-secret-0123456789"
VALID: dict[str, Any] = {"reasoning": "It agrees.", "verdict": "valid"}
"""An answer to `question()`."""


def question(response: str = "It is done.", **changes: Any) -> Question[Label]:
    """Whether a response is valid."""
    return Question(
        **{
            "instructions": "Is the response valid?",
            "data": {"response": response},
            "answer": label("valid", "invalid"),
            **changes,
        }
    )


def settings(server: JudgeServer | str, **changes: Any) -> Settings:
    """For a model called `judge` at a server that is given, or at a URL."""
    url = server if isinstance(server, str) else server.url
    return Settings(
        **{
            "model": "local:judge",
            "providers": {"local": Provider(url, KEY, allow_private=True)},
            **changes,
        }
    )


class Time:
    """Seconds that pass only when somebody sleeps."""

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
class Told:
    """An `Observer` that remembers all but how long requests took."""

    requests: list[tuple[str, str]] = field(default_factory=list)
    used: list[tuple[str, str, int]] = field(default_factory=list)
    costs: list[tuple[str, float]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def request(self, model: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((model, code))

    def tokens(self, model: str, kind: str, count: int) -> None:
        self.used.append((model, kind, count))

    def cost(self, model: str, usd: float) -> None:
        self.costs.append((model, usd))

    def cached(self, model: str, how: str) -> None:
        self.asked.append((model, how))


def asker(
    server: JudgeServer | str,
    told: Told | None = None,
    time: Time | None = None,
    resolve: Any = None,
    **changes: Any,
) -> Asker:
    """Asks a server, in virtual time, without chance."""
    time = time or Time()
    return Asker(
        settings(server, **changes),
        told,
        clock=time,
        wall=time,
        sleep=time.sleep,
        draw=lambda: 1.0,
        resolve=resolve,
    )


async def outcome(ask: Asker, asked: Question[Label] | None = None) -> str:
    """The verdict, or the reason why there is none."""
    try:
        return (await ask(asked or question())).verdict
    except JudgeError as error:
        return error.reason

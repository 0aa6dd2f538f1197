"""Whom to ask, and what it may cost: the values that an `Asker` works with, checked where the
configuration is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pathgauge.scorers.judge_protocol import JudgeError

DEFAULT_PROVIDER = "openai"
OPENAI_URL = "https://api.openai.com/v1"

StructuredOutput = Literal["json_schema", "json_object", "none"]
"""How a server is told the form of an answer: a JSON schema that it keeps to, any JSON object, or
by the instructions alone.
"""


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks the chat completions of OpenAI."""

    base_url: str = OPENAI_URL
    api_key: str = field(default="", repr=False)
    """Empty: requests go out without credentials."""
    allow_private: bool = False
    """Whether it may be at a private, loopback or link-local address, and be spoken to without TLS.
    """
    structured_output: StructuredOutput = "json_schema"
    ca_file: str | None = None
    """The CAs in PEM that the server is known by; `None` are those of the system."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """Budgets by UTC hour and day; `None` is no limit."""

    calls_per_hour: float | None = None
    calls_per_day: float | None = None
    tokens_per_hour: float | None = None
    tokens_per_day: float | None = None
    usd_per_hour: float | None = None
    usd_per_day: float | None = None


class Model(NamedTuple):
    """A model at its provider."""

    provider: str
    name: str

    @property
    def label(self) -> str:
        """As `provider:name`."""
        return f"{self.provider}:{self.name}"


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it. Times in seconds."""

    model: str
    """The model of questions that name none: `provider:model`, or a model of the provider `openai`.
    """
    providers: Mapping[str, Provider] = field(default_factory=dict)
    """By name. Nobody else is asked."""
    timeout: float = 30.0
    """Of one request."""
    deadline: float = 120.0
    """Of a question, with all that waits and is repeated."""
    retries: int = 3
    """Requests after the first one that failed."""
    concurrency: int = 8
    """Requests at a time."""
    cache_size: int = 10_000
    """Answers that are kept; 0 keeps none."""
    limits: BudgetLimits = BudgetLimits()
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By `provider:model` or by model."""

    def provider(self, name: str) -> Provider:
        """The provider of that name. Raises `JudgeError` for one that is not configured: it must
        not be sent what others may see.
        """
        if name not in self.providers:
            raise JudgeError("judge_unconfigured", f"no provider {name} is configured")
        return self.providers[name]

    def resolve(self, name: str | None) -> Model:
        """The model that a question means. What stands before a colon is a provider where one is
        called so, else a part of the name.
        """
        default = self._split(self.model, DEFAULT_PROVIDER)
        return default if name is None else self._split(name, default.provider)

    def price(self, model: Model) -> Price | None:
        """What the model costs; `None`: not known."""
        return self.prices.get(model.label) or self.prices.get(model.name)

    def _split(self, written: str, otherwise: str) -> Model:
        provider, colon, name = written.partition(":")
        known = provider in self.providers or provider == DEFAULT_PROVIDER
        return Model(provider, name) if colon and known else Model(otherwise, written)

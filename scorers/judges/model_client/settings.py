"""The settings of a `ModelClient`. They are validated where the configuration is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client.cache import MAX_BYTES as MAX_CACHE_BYTES

DEFAULT_PROVIDER = "openai"
OPENAI_URL = "https://api.openai.com/v1"

StructuredOutput = Literal["json_schema", "json_object", "none"]
"""How the server learns the form of the answer: as a JSON schema that it enforces, as any JSON
object, or from the instructions only.
"""
TokenLimit = Literal["max_completion_tokens", "max_tokens"]
"""The request parameter that limits the length of an answer. Servers know one of them or both."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A server with the OpenAI chat completions API."""

    base_url: str = OPENAI_URL
    """A query, such as Azure's `?api-version=`, is sent with each request."""
    api_key: str = field(default="", repr=False)
    """Empty: requests are sent without credentials."""
    allow_private: bool = False
    """Allow private, loopback and link-local addresses, and connections without TLS."""
    structured_output: StructuredOutput = "json_schema"
    ca_file: str | None = None
    """PEM file of the CAs to trust; `None`: those of the system."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """Budgets per UTC hour and day; `None`: unlimited."""

    calls_per_hour: float | None = None
    calls_per_day: float | None = None
    tokens_per_hour: float | None = None
    tokens_per_day: float | None = None
    usd_per_hour: float | None = None
    usd_per_day: float | None = None


class Model(NamedTuple):
    """A model of a provider."""

    provider: str
    name: str

    @property
    def label(self) -> str:
        """`provider:name`."""
        return f"{self.provider}:{self.name}"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a `ModelClient`. Times are in seconds."""

    model: str
    """Used for questions without a model: `provider:model`, or a model of the provider `openai`."""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    """By name. Requests go to these servers only."""
    timeout: float = 30.0
    """For one request."""
    deadline: float = 120.0
    """For one question, including waiting and retries."""
    retries: int = 3
    """Further requests after the first one failed."""
    concurrency: int = 8
    """Maximum number of concurrent requests."""
    cache_size: int = 10_000
    """Maximum number of cached answers; 0 disables the cache."""
    max_cache_bytes: int = MAX_CACHE_BYTES
    limits: BudgetLimits = BudgetLimits()
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By `provider:model` or by model name."""

    def provider(self, name: str) -> Provider:
        """The provider of that name.

        Raises `JudgeError` if it is not configured: its data must not go to another provider.
        """
        if name not in self.providers:
            raise JudgeError("judge_unconfigured", f"no provider {name} is configured")
        return self.providers[name]

    def resolve(self, name: str | None) -> Model:
        """The model for the `model` of a question; `None` is the default model.

        A prefix before a colon is a provider if one has that name, else a part of the model name.
        """
        default = self._split(self.model, DEFAULT_PROVIDER)
        return default if name is None else self._split(name, default.provider)

    def price(self, model: Model) -> Price | None:
        """The price of the model; `None`: unknown."""
        return self.prices.get(model.label) or self.prices.get(model.name)

    def _split(self, name: str, default_provider: str) -> Model:
        prefix, colon, rest = name.partition(":")
        if colon and (prefix in self.providers or prefix == DEFAULT_PROVIDER):
            return Model(prefix, rest)
        return Model(default_provider, name)

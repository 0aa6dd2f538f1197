"""The section `judge`: the models that criteria ask, with timeouts, sampling and budget."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from pathgauge.collector.config.section import SecretSection, Section, not_text
from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.core.documents.quantities import (
    Count,
    Duration,
    FileName,
    Switch,
    parse_number,
    refuse_credentials,
)
from pathgauge.scorers.judges.model_client.public_addresses import is_public
from pathgauge.scorers.judges.model_client.settings import (
    DEFAULT_PROVIDER,
    OPENAI_URL,
    BudgetLimits,
    Price,
    Provider,
    Settings,
    StructuredOutput,
)
from pathgauge.scorers.types import Json

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?:/[!-~]*)?",
    re.ASCII,
)
_CREDENTIAL = re.compile(r"[?&][^&=]*(?:key|token|secret|sig|password)[^&=]*=", re.IGNORECASE)
_KEY = re.compile(r"[!-~]*", re.ASCII)
_ADDRESS = re.compile(r"[0-9.]+|.*:.*", re.ASCII)

Share = Annotated[float, BeforeValidator(parse_number), Field(ge=0, le=1)]
Number = Annotated[float, BeforeValidator(parse_number), Field(ge=0, allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(parse_number), Field(ge=0)]


def parse_url(value: Json) -> Json:
    """Check that the value is the URL of a server, without fragment and credentials."""
    refuse_credentials(value)
    match = _URL.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match["port"] or 443) <= 65535 or set("#@") & set(match[0]):
        raise ValueError("a URL such as https://api.openai.com/v1")
    return value


def _text(value: Json) -> Json:
    """Accept a key without a value, and a plain number: an environment variable of digits is read
    as one.
    """
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


class JudgeProvider(SecretSection):
    """A server with OpenAI's chat completions API. Error messages never quote the key."""

    base_url: Annotated[str, BeforeValidator(parse_url)] = OPENAI_URL
    api_key: Annotated[str, BeforeValidator(_text), Field(repr=False)] = ""
    allow_private: Switch = False
    structured_output: StructuredOutput = "json_schema"
    ca_file: FileName | None = None

    @model_validator(mode="after")
    def _is_safe(self) -> JudgeProvider:
        url = _URL.fullmatch(self.base_url)
        assert url is not None
        host = url["host"].strip("[]")
        if _CREDENTIAL.search(self.base_url):
            raise ValueError("found a base_url with a credential, expected it as api_key")
        if not self.allow_private:
            self._check_public(url["scheme"], host)
        if not _KEY.fullmatch(self.api_key):
            raise ValueError(
                "found an api_key that a header cannot contain, expected visible ASCII without"
                " spaces and line breaks"
            )
        if self.ca_file is not None and url["scheme"] != "https":
            raise ValueError("found http and a ca_file, expected https")
        return self

    def _check_public(self, scheme: str, host: str) -> None:
        if scheme != "https":
            raise ValueError("found a URL without https, expected https, or allow_private")
        if host.lower() == "localhost" or (_ADDRESS.fullmatch(host) and not is_public(host)):
            raise ValueError(
                f"found the address {host}, expected a public address, or allow_private"
            )
        if not self.api_key:
            raise ValueError(
                "found no api_key, expected one, or allow_private for a server of your own that"
                " needs none"
            )


class JudgeScenario(Section):
    """The sampling of one scenario."""

    sample_rate: Share = 1.0


class JudgeBudget(Section):
    """Limits per hour and day, in UTC; `None` is no limit."""

    calls_per_hour: Count | None = None
    calls_per_day: Count | None = None
    tokens_per_hour: Count | None = None
    tokens_per_day: Count | None = None
    usd_per_hour: Number | None = None
    usd_per_day: Number | None = None

    @property
    def is_in_dollars(self) -> bool:
        """Whether it needs the prices of models."""
        return self.usd_per_hour is not None or self.usd_per_day is not None


class JudgePrice(Section):
    """US dollars per million tokens."""

    input: Number
    output: Number


def no_price(model: str) -> str:
    """What is wrong with a budget in US dollars for this model."""
    return f"found a budget in US dollars and no price of {model}, expected one under judge.prices"


class Judge(Section):
    """The models that criteria ask. Times in seconds."""

    model: Annotated[str, Field(min_length=1)]
    providers: Annotated[dict[str, JudgeProvider], BeforeValidator(not_text)] = Field(
        default_factory=dict
    )
    timeout: Annotated[Duration, Field(gt=0)] = 30.0
    deadline: Annotated[Duration, Field(gt=0)] = 120.0
    retries: Whole = 3
    concurrency: Count = 8
    queue_size: Count = 1000
    """How many evaluations can wait."""
    cache_size: Whole = 10_000
    sample_rate: Share = 1.0
    scenarios: dict[str, JudgeScenario] = Field(default_factory=dict)
    budget: JudgeBudget = JudgeBudget()
    prices: dict[str, JudgePrice] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_consistent(self) -> Judge:
        self._check_providers()
        if self.timeout > self.deadline:
            found = f"found timeout {self.timeout:g}s, deadline {self.deadline:g}s"
            raise ValueError(f"{found}, expected timeout <= deadline")
        self._check_model()
        return self

    def _check_providers(self) -> None:
        for name in self.providers:
            if not name or ":" in name:
                raise ValueError(f"found the provider {name!r}, expected a name without a colon")
        known = [*dict.fromkeys((*self.providers, DEFAULT_PROVIDER))]
        prefix, colon, _ = self.model.partition(":")
        if colon and prefix not in known:
            found = f"found the model {self.model!r} of an unknown provider"
            raise ValueError(
                f"{found}, expected one of {', '.join(known)}{did_you_mean(prefix, known)}"
            )

    def _check_model(self) -> None:
        settings = self.settings(Path())
        model = settings.resolve(None)
        if not model.name.strip():
            raise ValueError(
                f"found the model {self.model!r}, expected a name, such as openai:gpt-4.1-mini"
            )
        if model.provider not in self.providers:
            raise ValueError(
                f"found no provider {model.provider}, expected one with an api_key under providers"
            )
        if self.budget.is_in_dollars and settings.price(model) is None:
            raise ValueError(no_price(model.label))

    def settings(self, folder: Path) -> Settings:
        """The settings of a `ModelClient`; paths are relative to `folder`."""
        return Settings(
            model=self.model,
            providers={
                name: _provider(written, folder) for name, written in self.providers.items()
            },
            timeout=self.timeout,
            deadline=self.deadline,
            retries=self.retries,
            concurrency=self.concurrency,
            cache_size=self.cache_size,
            limits=BudgetLimits(**self.budget.model_dump()),
            prices={name: Price(price.input, price.output) for name, price in self.prices.items()},
        )


def missing_package() -> bool:
    """Whether the package openai is not installed."""
    return find_spec("openai") is None


def _provider(written: JudgeProvider, folder: Path) -> Provider:
    ca_file = None if written.ca_file is None else str(folder / written.ca_file)
    return Provider(
        written.base_url, written.api_key, written.allow_private, written.structured_output, ca_file
    )

"""The base class of judges: options, the question in several samples, and the score.

A subclass defines the data to show, the instructions, and how answers become a score. It does no
I/O: see `pathgauge.scorers.judge_protocol.Ask`.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pathgauge.scorers.judge_protocol import Ask, Question
from pathgauge.scorers.judges.adk_options import judge_options
from pathgauge.scorers.judges.prompt_data import RULES
from pathgauge.scorers.judges.samples import MAX_SAMPLES, ask_samples
from pathgauge.scorers.judges.verdicts import Verdict
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_MIN_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class ModelJudge(ABC):
    """A scorer that asks a model."""

    asks_model: ClassVar[bool] = True
    name: ClassVar[str]
    version: ClassVar[str]
    needs_reference: ClassVar[bool]
    template: ClassVar[str]  # set on each instance
    """A fingerprint of everything that shapes the question. A changed question is a new judge."""

    model: str | None = None
    """`provider:model`, or a model of the default provider; `null` is the configured model."""
    samples: int = 1
    """How many times to ask the same question. Labels need a strict majority of the samples,
    numbers an answer from more than half of them.
    """
    temperature: float | None = 0.0
    """Temperature of the model; `null` uses the model's default."""
    max_tokens: int = 1024
    """Maximum length of an answer."""
    max_chars: int = 20_000
    """Maximum length of each member of the data; longer members lose their middle."""
    judge_model_options: Mapping[str, Json] | None = field(
        default=None, metadata={"written": "mapping"}
    )
    """ADK's form of these options: `judge_model` for `model`, `num_samples` for `samples`."""

    def __post_init__(self) -> None:
        for option, value in judge_options(self.judge_model_options or {}).items():
            object.__setattr__(self, option, value)
        object.__setattr__(self, "judge_model_options", None)
        _check_range("samples", self.samples, 1, MAX_SAMPLES)
        _check_range("max_tokens", self.max_tokens, 1, 1_000_000)
        _check_range("max_chars", self.max_chars, _MIN_CHARS, 10_000_000)
        if self.temperature is not None:
            _check_range("temperature", self.temperature, 0, 2)
        if self.model is not None and not self.model.strip():
            raise ValueError("model: found no text, expected the name of a model")
        object.__setattr__(self, "template", self._fingerprint())

    @abstractmethod
    def instruction_texts(self) -> tuple[str, ...]:
        """All variants of the instructions."""

    @abstractmethod
    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The data for the model, or a score without a value if there is nothing to judge."""

    @abstractmethod
    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """The schema of the answers, and how they become a score."""

    def instructions(self, data: Mapping[str, Json]) -> str:
        """The instructions for this data."""
        return self.instruction_texts()[0]

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Never a value: only `judge` has a model to ask."""
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference")
        return Score.not_evaluated("judge_unconfigured", "no model is configured to judge")

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Ask the model, one sample after the other, and score its answers."""
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference")
        data = self.prompt_data(actual, expected)
        return data if isinstance(data, Score) else await self.asked(data, ask)

    async def asked(self, data: Mapping[str, Json], ask: Ask) -> Score:
        """The score for this data."""
        verdict = self.verdict(data)
        question: Question[Any] = Question(
            self.instructions(data),
            data,
            verdict.answer,
            self.model,
            self.temperature,
            self.max_tokens,
            self.max_chars,
        )
        results = await ask_samples(
            ask,
            question,
            self.samples,
            lambda answers, left: verdict.is_decided(answers, left, self.samples),
        )
        score = verdict.score(results)
        judge = {"model": self.model, "template": self.template, **score.details["judge"]}
        return replace(score, details={**score.details, "judge": judge})

    def _fingerprint(self) -> str:
        parts = [
            self.name,
            self.version,
            RULES,
            *self.instruction_texts(),
            self.verdict({}).answer.model_json_schema(),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def _check_range(option: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{option}: found {value}, expected a number from {low} to {high}")

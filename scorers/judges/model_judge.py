"""What judges have in common: an invocation and its reference come in, a question goes out in
several samples, a score comes back.

A judge says what it shows, what it asks, and what becomes of the answers. It talks to nobody
itself: see `pathgauge.scorers.judge_protocol.Ask`.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pathgauge.scorers.judge_protocol import Ask, Question
from pathgauge.scorers.judges.prompt_data import RULES
from pathgauge.scorers.judges.samples import MAX_SAMPLES, ask_panel
from pathgauge.scorers.judges.verdicts import Verdict
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_ADK_OPTIONS: Mapping[str, str] = {"judge_model": "model", "num_samples": "samples"}
_ADK_CONFIG: Mapping[str, str] = {"temperature": "temperature", "max_output_tokens": "max_tokens"}
_FEWEST_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class ModelJudge(ABC):
    """A scorer that asks a model; its subclasses say what."""

    asks_model: ClassVar[bool] = True
    name: ClassVar[str]
    version: ClassVar[str]
    needs_reference: ClassVar[bool]
    template: ClassVar[str]  # belongs to each instance
    """Changes with everything that shapes the question, so that another question is another judge.
    """

    model: str | None = None
    """`provider:model`, or a model of the default provider; `null` is the one that is configured.
    """
    samples: int = 1
    """How often the model is asked the same. Labels need a strict majority of these, numbers
    answers from more than half.
    """
    temperature: float | None = 0.0
    """Of the model; `null` leaves it to the model."""
    max_tokens: int = 1024
    """Of an answer."""
    max_chars: int = 20_000
    """Of each member that the model is shown; what is longer loses its middle."""
    judge_model_options: Mapping[str, Json] | None = field(
        default=None, metadata={"written": "mapping"}
    )
    """ADK's way to write `judge_model` for `model` and `num_samples` for `samples`."""

    def __post_init__(self) -> None:
        for option, value in _adk_options(self.judge_model_options or {}).items():
            object.__setattr__(self, option, value)
        object.__setattr__(self, "judge_model_options", None)
        _check("samples", self.samples, 1, MAX_SAMPLES)
        _check("max_tokens", self.max_tokens, 1, 1_000_000)
        _check("max_chars", self.max_chars, _FEWEST_CHARS, 10_000_000)
        if self.temperature is not None:
            _check("temperature", self.temperature, 0, 2)
        if self.model is not None and not self.model.strip():
            raise ValueError("model: found no text, expected the name of a model")
        shape = [
            self.name,
            self.version,
            RULES,
            *self.wordings(),
            self.verdict({}).answer.model_json_schema(),
        ]
        object.__setattr__(
            self, "template", hashlib.sha256(json.dumps(shape).encode()).hexdigest()[:8]
        )

    @abstractmethod
    def wordings(self) -> tuple[str, ...]:
        """All instructions that the judge has."""

    @abstractmethod
    def shown(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members of the data; a score without a value when there is nothing to ask."""

    @abstractmethod
    def verdict(self, shown: Mapping[str, Json]) -> Verdict[Any]:
        """The form of the answers, and what becomes of them."""

    def instructions(self, shown: Mapping[str, Json]) -> str:
        """The instructions for these members."""
        return self.wordings()[0]

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """No value: a model has to be asked."""
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference")
        return Score.not_evaluated("judge_unconfigured", "no model is configured to judge")

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Ask the model, sample after sample."""
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference")
        shown = self.shown(actual, expected)
        if isinstance(shown, Score):
            return shown
        verdict = self.verdict(shown)
        question: Question[Any] = Question(
            self.instructions(shown),
            shown,
            verdict.answer,
            self.model,
            self.temperature,
            self.max_tokens,
            self.max_chars,
        )
        panel = await ask_panel(
            ask,
            question,
            self.samples,
            lambda answers, left: verdict.is_decided(answers, left, self.samples),
        )
        score = verdict.score(panel)
        judge = {"model": self.model, "template": self.template, **score.details["judge"]}
        return replace(score, details={**score.details, "judge": judge})


def _adk_options(written: Mapping[str, Json]) -> dict[str, Json]:
    """The options that ADK's `judge_model_options` stand for. Raises `ValueError` for what has no
    counterpart.
    """
    options: dict[str, Json] = {}
    for key, value in _snake(written).items():
        if key in _ADK_OPTIONS:
            options[_ADK_OPTIONS[key]] = _checked_type(key, value)
        elif key == "judge_model_config":
            options |= _adk_config(value)
        elif (
            key != "parallelism_limit"
        ):  # samples are asked for one after the other, as by ADK's default
            expected = ", ".join([*_ADK_OPTIONS, "judge_model_config", "parallelism_limit"])
            raise ValueError(f"judge_model_options: found {key!r}, expected {expected}")
    return options


def _adk_config(written: Json) -> dict[str, Json]:
    if not isinstance(written, Mapping | None):
        raise ValueError("judge_model_options: judge_model_config: expected a mapping")
    config = {key: value for key, value in _snake(written or {}).items() if value is not None}
    if unknown := [key for key in config if key not in _ADK_CONFIG]:
        raise ValueError(
            f"judge_model_options: judge_model_config: found {unknown[0]!r}, expected"
            f" {', '.join(_ADK_CONFIG)}"
        )
    return {_ADK_CONFIG[key]: _checked_type(key, value) for key, value in config.items()}


def _checked_type(key: str, value: Json) -> Json:
    kind: Any = str if key == "judge_model" else int | float if key == "temperature" else int
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = (
            "a text" if kind is str else "a number" if key == "temperature" else "a whole number"
        )
        raise ValueError(f"judge_model_options: {key}: found {value!r}, expected {expected}")
    return value


def _snake(written: Mapping[str, Json]) -> dict[str, Json]:
    return {
        re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", str(key)).lower(): value
        for key, value in written.items()
    }


def _check(option: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{option}: found {value}, expected a number from {low} to {high}")

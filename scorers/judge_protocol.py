"""The types between judges and the code that asks models on their behalf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeGuard, TypeVar, runtime_checkable

from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, Score, Scorer

if TYPE_CHECKING:  # scorers that ask no model must not load pydantic
    from pydantic import BaseModel

AnswerT = TypeVar("AnswerT", bound="BaseModel")


class JudgeError(Exception):
    """No answer is available. `reason` becomes a label value; the message is one line for people.

    The message must not contain any of the judged content.
    """

    def __init__(self, reason: Reason, message: str, answer: str | None = None) -> None:
        """`answer` is what the model wrote, if that could not be used. It may quote the judged
        content, so it is no part of the message.
        """
        super().__init__(message)
        self.reason: Reason = reason
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Question(Generic[AnswerT]):
    """One question to a model."""

    instructions: str
    """Built from templates and configuration only, never from telemetry."""
    data: Mapping[str, Json]
    """The judged content, in the order in which the model sees it. It is sent as data, separate
    from the instructions: see `pathgauge.scorers.judges.prompt_data`.
    """
    answer: type[AnswerT]
    """The schema of the answer."""
    model: str | None = None
    """`provider:model`, or a model of the default provider. `None`: the configured model."""
    temperature: float | None = None
    """`None`: the model's default."""
    max_tokens: int = 1024
    """Limit for the answer."""
    max_chars: int = 20_000
    """Limit for each encoded member of `data`; longer members lose their middle."""
    sample: int = 0
    """Index of this sample when the same question is asked several times."""


class Ask(Protocol):
    """Sends questions to a model."""

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """Return the answer, validated against `question.answer`. Raises `JudgeError`."""
        ...


@runtime_checkable
class Judge(Scorer, Protocol):
    """A scorer that asks a model.

    Its `score`, which has no model to ask, returns a score without a value (`judge_unconfigured`).
    """

    @property
    def asks_model(self) -> bool:
        """True."""
        ...

    @property
    def model(self) -> str | None:
        """The model to ask, as in `Question`. `None`: the configured model."""
        ...

    @property
    def template(self) -> str:
        """A fingerprint of everything that shapes the questions. A new template is a new judge."""
        ...

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Score `actual` against `expected`.

        When the model gives no usable answer, the score has no value but a reason.
        """
        ...


def asks_model(scorer: Scorer) -> TypeGuard[Judge]:
    """Whether a scorer is a `Judge`."""
    return bool(getattr(scorer, "asks_model", False))

"""What a judge asks a model, and how the answer comes back: the types between judges and whoever
asks models for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeGuard, TypeVar, runtime_checkable

from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, Score, Scorer

if TYPE_CHECKING:  # scorers that ask nobody do without it
    from pydantic import BaseModel

AnswerT = TypeVar("AnswerT", bound="BaseModel")


class JudgeError(Exception):
    """No answer can be had; `reason` says why in one of the words that label counters, the message
    in one line for a person.

    The message holds nothing of what was judged.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


@dataclass(frozen=True, slots=True)
class Question(Generic[AnswerT]):
    """One question to a model."""

    instructions: str
    """What is asked: from templates and configuration alone, never from telemetry."""
    data: Mapping[str, Json]
    """What is judged, in the order in which it is shown. It travels as data:
    `pathgauge.scorers.judges.prompt_data`.
    """
    answer: type[AnswerT]
    """The form of the answer."""
    model: str | None = None
    """`provider:model`, or a model of the default provider; `None` is the one that is configured.
    """
    temperature: float | None = None
    """`None` leaves it to the model."""
    max_tokens: int = 1024
    """Of the answer."""
    max_chars: int = 20_000
    """Of each member of `data`, as it is shown; what is longer loses its middle."""
    sample: int = 0
    """Which of several samples of the same question this is."""


class Ask(Protocol):
    """Asks a model."""

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """The answer, which fits `question.answer`. Raises `JudgeError`."""
        ...


@runtime_checkable
class Judge(Scorer, Protocol):
    """A scorer that asks a model. Without anybody to ask, `score` says that the score was not
    evaluated (`judge_unconfigured`).
    """

    asks_model: bool
    model: str | None
    """The model to ask, as in `Question`; `None` is the one that is configured."""
    template: str
    """A digest of all that shapes its questions: another template is another judge."""

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Score `actual` against `expected`. A failure to get an answer is a score without a value,
        with its reason.
        """
        ...


def asks_model(scorer: Scorer) -> TypeGuard[Judge]:
    """Whether a scorer is a `Judge`."""
    return bool(getattr(scorer, "asks_model", False))

"""What people say of runs, as the API takes and gives it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from pathgauge.collector.api.attribute_docstrings import describe_properties
from pathgauge.collector.api.models import Model
from pathgauge.collector.api.queries import HexId, Name, Query, lower
from pathgauge.collector.core.feedback.answer import (
    DEFAULT_NAME,
    MAX_COMMENT_CHARS,
    MAX_ID_CHARS,
    MAX_LABEL_CHARS,
    MAX_NAME_CHARS,
    MAX_RATER_CHARS,
    Answer,
    Scale,
    Source,
    derived_id,
)

_UP, _DOWN = "thumbs_up", "thumbs_down"
_EPOCH = datetime.fromtimestamp(0, UTC)


def _since_epoch(value: datetime) -> datetime:
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    if value < _EPOCH:
        raise _expected("a time since 1970")
    return value


def _not_zero(value: str) -> str:
    if not value.strip("0"):
        raise _expected("an id that is not zero")
    return value


TraceId = Annotated[
    str, BeforeValidator(lower), AfterValidator(_not_zero), Field(pattern="^[0-9a-f]{32}$")
]
SpanId = Annotated[
    str, BeforeValidator(lower), AfterValidator(_not_zero), Field(pattern="^[0-9a-f]{16}$")
]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
"""Not `true`, which would be 1, the worst of five stars."""


class Given(BaseModel):
    """An answer of a person. It is about an invocation, a whole trace or a conversation, and says
    something with `thumb`, `label` or `rating`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=describe_properties)

    id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARS)
    """Chosen by the client: the same answer sent again with it changes nothing."""
    trace_id: TraceId | None = None
    span_id: SpanId | None = None
    """The entry agent's span of the invocation. Needed if the trace has several invocations."""
    conversation_id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARS)
    """Instead of a trace."""
    name: str = Field(default=DEFAULT_NAME, min_length=1, max_length=MAX_NAME_CHARS)
    """What was asked. With the name of a criterion, the answer is about this criterion only."""
    thumb: Literal["up", "down"] | None = None
    label: str | None = Field(default=None, min_length=1, max_length=MAX_LABEL_CHARS)
    rating: Number | None = None
    scale: tuple[Number, Number] | None = None
    """The worst and the best rating. Without it, `feedback.scales` or 0 to 1."""
    comment: str | None = Field(default=None, max_length=MAX_COMMENT_CHARS)
    rater: str | None = Field(default=None, min_length=1, max_length=MAX_RATER_CHARS)
    """Who gave the answer: their newest answer replaces earlier ones. Only a pseudonym is stored.
    Answers without a rater count as those of one person.
    """
    time: Annotated[datetime, AfterValidator(_since_epoch)] | None = None
    """When it was given; by default now."""
    tenant: Name = None
    """Only for readers of all tenants: whose trace it is."""

    @model_validator(mode="after")
    def _is_complete(self) -> Given:
        if (self.trace_id is None) == (self.conversation_id is None):
            raise _expected("exactly one of trace_id and conversation_id")
        if self.span_id is not None and self.trace_id is None:
            raise _expected("trace_id with span_id")
        if self.thumb is not None and self.label is not None:
            raise _expected("one of thumb and label")
        if self.thumb is None and self.label is None and self.rating is None:
            raise _expected("a thumb, a label or a rating")
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise _expected("a scale whose second number is larger")
        return self

    def answer(self, tenant: str, source: Source, unique: str) -> Answer:
        """The answer. `unique` is the id of one that the client gave none."""
        label = self.label
        if self.thumb is not None:
            label = _UP if self.thumb == "up" else _DOWN
        return Answer(
            tenant,
            self.trace_id or "",
            self.span_id or "",
            self.conversation_id or "",
            self.name,
            label,
            self.rating,
            None if self.scale is None else Scale(*self.scale),
            self.comment,
            self.rater,
            source,
            None if self.time is None else self.time.timestamp(),
            f"{source}:{self.id or derived_id(unique)}",
        )


def _expected(text: str) -> PydanticCustomError:
    return PydanticCustomError("incomplete", "Input should have {expected}", {"expected": text})


class Recorded(Model):
    """What became of an answer."""

    outcome: Literal["created", "replaced", "outdated", "repeated"]
    """`replaced` an earlier answer of the same person; `outdated`, a newer one is known;
    `repeated`, it was sent before. It is stored in all cases.
    """


class GivenAnswer(Model):
    """An answer that is stored."""

    trace_id: str | None
    span_id: str | None
    conversation_id: str | None
    tenant: str
    name: str
    label: str | None
    rating: float | None
    scale: tuple[float, float] | None
    passed: bool | None
    """Whether the person says pass; `null` if the answer says neither pass nor fail."""
    comment: str | None
    rater: str | None
    """A pseudonym."""
    source: Source
    time: datetime


class GivenAnswers(Model):
    """The newest answer of each person, the newest first."""

    answers: list[GivenAnswer]


class MeasuredAgreement(Model):
    """The agreement of one criterion with people."""

    tenant: str
    metric: str
    judge: str
    """The model and template; empty for a criterion that asks no model."""
    pairs: int
    both_passed: int
    only_people_passed: int
    only_metric_passed: int
    neither_passed: int
    kappa: float | None
    """Cohen's kappa; `null` if it is undefined, as all verdicts are the same."""
    lower: float | None
    upper: float | None


class Agreements(Model):
    """The agreement of all criteria with people, in the window of the configuration."""

    metrics: list[MeasuredAgreement]
    answers: dict[str, int]
    """What became of the answers."""


class FeedbackQuery(Query):
    """About what answers are wanted."""

    trace_id: HexId = None
    span_id: HexId = None
    """Of one run: with the answers about the whole trace."""
    conversation_id: Name = None
    tenant: Name = None

    @model_validator(mode="after")
    def _has_subject(self) -> FeedbackQuery:
        if (self.trace_id is None) == (self.conversation_id is None):
            raise _expected("exactly one of trace_id and conversation_id")
        return self


class AgreementQuery(Query):
    """Whose agreement is wanted."""

    tenant: Name = None

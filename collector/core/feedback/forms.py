"""The notations in which instrumentations write what people said, as attributes of a span, of a
span event or of a log record.

Only people count. Most notations are used for results of models and of code as well, so an answer
is read only if it says that a person gave it; the others are counted as `not_human`. For names that
nobody gives to a model's verdict (`USER_NAMES`) the notation need not say so.

Langfuse and LangSmith document no OTLP form of their scores: their attributes here are the fields
of their APIs with the usual prefix, as exporters write them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pathgauge.collector.core.feedback.answer import (
    DEFAULT_NAME,
    MAX_COMMENT_CHARS,
    MAX_ID_CHARS,
    MAX_LABEL_CHARS,
    MAX_NAME_CHARS,
    MAX_RATER_CHARS,
    Scale,
    Source,
)
from pathgauge.collector.core.invocations.dialects.vocabulary import has_mark
from pathgauge.collector.core.otlp.own_events import EVALUATION_RESULT

USER_FEEDBACK = "gen_ai.evaluation.user_feedback"
USER_NAMES = frozenset({"user_feedback", "user_score", "user_rating", "end_user_feedback"})
MAX_ANSWERS = 50
"""Answers that one span or log record can hold; further ones are counted and not read."""
_INDEXED = re.compile(
    r"(trace\.|session\.|)(?:annotations|evaluations)\.(\d{1,4})\.(?:annotation|evaluation)\.(\w+)"
)
_MARKS = (b"annotator_kind", b"feedback.", b"gen_ai.evaluation.", b"langfuse.score.")
"""One of these is in every record with an answer."""
_PREFIXES = (
    "gen_ai.evaluation.",
    "microsoft.gen_ai.",
    "logfire.feedback.",
    "langfuse.score.",
    "langsmith.feedback.",
)
_FREE_TEXTS = (".explanation", ".comment", ".metadata", ".correction")
_RATER_KEYS = ("user.id", "enduser.id")
_KINDS = (
    "microsoft.gen_ai.evaluation.actor.type",
    "gen_ai.evaluation.evaluator.type",
    "annotator_kind",
)
_HUMAN = "human"
_PAIR = Scale(-1.0, 1.0)


class Said(NamedTuple):
    """An answer as it is written, without its subject."""

    source: Source
    is_human: bool
    name: str
    label: str | None = None
    rating: float | None = None
    scale: Scale | None = None
    comment: str | None = None
    rater: str | None = None
    id: str = ""
    target: str = "span"
    """`span`, `trace`, `session`, or `parent`: the parent of the span."""

    @property
    def is_empty(self) -> bool:
        """Whether it says neither good nor bad."""
        return self.label is None and self.rating is None


Attributes = Mapping[str, Any]


def said(attributes: Attributes, event_name: str = "", body: Any = None) -> Iterator[Said]:
    """The answers in the attributes of a record, whether people gave them or not."""
    if event_name in (EVALUATION_RESULT, USER_FEEDBACK):
        yield _gen_ai(attributes, event_name, body)
    for form in _FORMS:
        yield from form(attributes)


def may_answer(raw: bytes) -> bool:
    """Whether an encoded record may have an answer; others need not be decoded."""
    return has_mark(raw, _MARKS)


def feedback_keys(attributes: Attributes) -> frozenset[str]:
    """The keys of answers in these attributes, without comments and other free texts."""
    keys = {
        key
        for key in attributes
        if (key.startswith(_PREFIXES) or key == "annotator_kind" or _INDEXED.fullmatch(key))
        and not key.endswith(_FREE_TEXTS)
    }
    logfire = attributes.get("logfire.feedback.name")
    return frozenset({*keys, logfire} if isinstance(logfire, str) else keys)


def _gen_ai(attributes: Attributes, event_name: str, body: Any) -> Said:
    name = _text(attributes.get("gen_ai.evaluation.name"), MAX_NAME_CHARS)
    earlier = attributes.get("gen_ai.evaluation.score")
    score = attributes.get("gen_ai.evaluation.score.value", earlier)
    comment = attributes.get("gen_ai.evaluation.explanation")
    if comment is None and isinstance(body, Mapping):
        comment = body.get("comment")
    is_feedback, by_person = event_name == USER_FEEDBACK, _by_person(attributes)
    return Said(
        "gen_ai",
        is_feedback or (_is_user_name(name) if by_person is None else by_person),
        name or ("user_feedback" if is_feedback else DEFAULT_NAME),
        _text(attributes.get("gen_ai.evaluation.score.label"), MAX_LABEL_CHARS),
        _number(score),
        _PAIR if is_feedback else None,
        _text(comment, MAX_COMMENT_CHARS),
        _rater(attributes),
        _text(attributes.get("microsoft.gen_ai.human_evaluation.id"), MAX_ID_CHARS) or "",
    )


def _by_person(attributes: Attributes) -> bool | None:
    """Whether a person gave an answer, and no model; `None` if it does not say."""
    if attributes.get("microsoft.gen_ai.human_evaluation.source"):
        return True
    given = [str(attributes[kind]).lower() for kind in _KINDS if attributes.get(kind)]
    return _HUMAN in given if given else None


def _openinference(attributes: Attributes) -> Iterator[Said]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for key, value in attributes.items():
        match = _INDEXED.fullmatch(key)
        if match is not None:
            target, index, field = match.groups()
            collection = key.removeprefix(target).partition(".")[0]
            found.setdefault((f"{target}{collection}", index), {"target": target})[field] = value
    for fields in found.values():
        target = fields["target"].removesuffix(".") or "span"
        yield Said(
            "openinference",
            str(fields.get("annotator_kind", "")).lower() == _HUMAN,
            _text(fields.get("name"), MAX_NAME_CHARS) or DEFAULT_NAME,
            _text(fields.get("label"), MAX_LABEL_CHARS),
            _number(fields.get("score")),
            comment=_text(fields.get("explanation"), MAX_COMMENT_CHARS),
            # The identifier is by whom annotations of one name are told apart.
            rater=_text(fields.get("identifier"), MAX_RATER_CHARS) or _rater(attributes),
            target=target,
        )


def _logfire(attributes: Attributes) -> Iterator[Said]:
    name = _text(attributes.get("logfire.feedback.name"), MAX_NAME_CHARS)
    if name is None:
        return
    label, rating = _either(attributes.get(name))
    yield Said(
        "logfire",
        True,
        name,
        label,
        rating,
        comment=_text(attributes.get("logfire.feedback.comment"), MAX_COMMENT_CHARS),
        rater=_rater(attributes),
        target="parent",
    )


def _langfuse(attributes: Attributes) -> Iterator[Said]:
    name = _text(attributes.get("langfuse.score.name"), MAX_NAME_CHARS)
    if name is None:
        return
    value = attributes.get("langfuse.score.string_value", attributes.get("langfuse.score.value"))
    label, rating = _either(value)
    author = _text(attributes.get("langfuse.score.author_user_id"), MAX_RATER_CHARS)
    source = str(attributes.get("langfuse.score.source", "")).lower()
    yield Said(
        "langfuse",
        source == "annotation" or (source != "eval" and _is_user_name(name)),
        name,
        label,
        rating,
        comment=_text(attributes.get("langfuse.score.comment"), MAX_COMMENT_CHARS),
        rater=author or _rater(attributes),
        id=_text(attributes.get("langfuse.score.id"), MAX_ID_CHARS) or "",
    )


def _langsmith(attributes: Attributes) -> Iterator[Said]:
    name = _text(attributes.get("langsmith.feedback.key"), MAX_NAME_CHARS)
    if name is None:
        return
    label, rating = _either(attributes.get("langsmith.feedback.score"))
    if label is None:
        label = _text(attributes.get("langsmith.feedback.value"), MAX_LABEL_CHARS)
    given = attributes.get("langsmith.feedback.source", "")
    source = str(attributes.get("langsmith.feedback.feedback_source.type", given)).lower()
    yield Said(
        "langsmith",
        source == "app" or (source != "model" and _is_user_name(name)),
        name,
        label,
        rating,
        comment=_text(attributes.get("langsmith.feedback.comment"), MAX_COMMENT_CHARS),
        rater=_rater(attributes),
        id=_text(attributes.get("langsmith.feedback.id"), MAX_ID_CHARS) or "",
    )


_FORMS: tuple[Callable[[Attributes], Iterator[Said]], ...] = (
    _openinference,
    _logfire,
    _langfuse,
    _langsmith,
)


def _is_user_name(name: str | None) -> bool:
    return name is not None and name.lower().replace("-", "_") in USER_NAMES


def _rater(attributes: Attributes) -> str | None:
    found = (_text(attributes.get(key), MAX_RATER_CHARS) for key in _RATER_KEYS)
    return next((rater for rater in found if rater), None)


def _either(value: Any) -> tuple[str | None, float | None]:
    """A value as a label or as a rating."""
    if isinstance(value, bool):
        return str(value).lower(), None
    rating = _number(value)
    return (None, rating) if rating is not None else (_text(value, MAX_LABEL_CHARS), None)


def _number(value: Any) -> float | None:
    """A finite number, also if it is written as text, as attributes of some languages are."""
    if isinstance(value, bool):
        return float(value)
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Any, max_chars: int) -> str | None:
    if value is None or isinstance(value, Mapping | list | bytes):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text[:max_chars] or None

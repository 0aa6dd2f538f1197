"""One answer of a person about a run, wherever it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Source: TypeAlias = Literal[
    "api", "ui", "gen_ai", "openinference", "logfire", "langfuse", "langsmith"
]
"""How an answer arrived. A closed set, because it is a metric label."""

MAX_NAME_CHARS = 200
MAX_LABEL_CHARS = 200
MAX_COMMENT_CHARS = 2_000
MAX_RATER_CHARS = 500
MAX_ID_CHARS = 200
DEFAULT_NAME = "feedback"
_ID_BYTES = 16


class Scale(NamedTuple):
    """The worst and the best rating that can be given."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer about one run, one whole trace, or one conversation.

    Of one person, subject and name, the newest answer replaces the others. Answers without a rater
    count as those of one person.
    """

    tenant: str
    trace_id: str
    """Empty for an answer about a conversation."""
    span_id: str = ""
    """Empty for an answer about a whole trace."""
    conversation_id: str = ""
    name: str = DEFAULT_NAME
    """What was asked. If it is the name of a criterion, the answer is about this criterion only."""
    label: str | None = None
    rating: float | None = None
    scale: Scale | None = None
    """The scale of the rating, if the sender has named one."""
    comment: str | None = None
    rater: str | None = None
    """Who gave it. Only a pseudonym is stored."""
    source: Source = "api"
    given_at: float | None = None
    """When it was given, in Unix seconds; `None`: when it arrived."""
    id: str = ""
    """The same answer, sent again, has the same id."""


def derived_id(*parts: object) -> str:
    """The id of an answer whose sender gave it none: equal if it is sent again."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_ID_BYTES).hexdigest()

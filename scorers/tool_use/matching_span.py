"""Scores whether an invocation has a span that matches a query, such as a slow database call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pathgauge.scorers.authoring.extras import Extras
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.tool_use.span_matching import matching_spans
from pathgauge.scorers.tool_use.span_query import SpanQuery
from pathgauge.scorers.types import Flag, Invocation, Json, ReferenceTurn, Score

_MAX_LISTED = 100
"""Spans in the details."""


@dataclass(frozen=True)
class HasMatchingSpan(Share):
    """1 if the number of spans that match a query is within its limits, else 0."""

    name: ClassVar[str] = "has_matching_span"

    query: SpanQuery | None = None
    """The conditions, described under *Spans* in docs/scorers.md."""
    min_count: int = 1
    """Minimum spans that match."""
    max_count: int | None = None
    """Maximum spans that match."""

    def __post_init__(self) -> None:
        if self.min_count < 0 or (self.max_count is not None and self.max_count < self.min_count):
            raise ValueError(
                f"min_count, max_count: found {self.min_count} and {self.max_count}, expected"
                " numbers from 0, the maximum not below the minimum"
            )

    @property
    def missing_option(self) -> str:
        """What must be configured before there can be a score."""
        return "query" if self.query is None else ""

    @cached_property
    def extras(self) -> Extras:
        """The spans, with the attributes of the query."""
        return Extras() if self.query is None else Extras(self.query.keys)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if self.query is None:
            return Score.not_evaluated("not_applicable", "no query is given")
        if not actual.spans:
            return Score.not_evaluated("spans_not_recorded")
        try:
            found = matching_spans(self.query, actual.spans)
        except (TooLongError, RecursionError) as error:
            return Score.not_evaluated("too_long", str(error))
        flags = _missing_parts(actual, self.query)
        if flags and not (self.query.survives_more_spans and self._is_final(len(found))):
            return Score.not_evaluated(
                "incomplete", f"spans or attributes may be missing: {', '.join(flags)}"
            )
        return self._score(actual, found)

    def _is_final(self, count: int) -> bool:
        """Whether the value stays the same if more spans match."""
        if self.max_count is None:
            return count >= self.min_count
        return count > self.max_count

    def _score(self, actual: Invocation, found: Sequence[int]) -> Score:
        spans = [actual.spans[at] for at in found]
        value = len(spans) >= self.min_count
        if self.max_count is not None:
            value = value and len(spans) <= self.max_count
        explanation = f"{len(spans)} of {counted(len(actual.spans), 'span')} match"
        if spans:
            explanation += f": {listed([span.name or '(no name)' for span in spans])}"
        details: dict[str, Json] = {
            "count": len(spans),
            "spans": [[span.span_id, span.name] for span in spans[:_MAX_LISTED]],
        }
        return Score(float(value), None, explanation, details)


def _missing_parts(actual: Invocation, query: SpanQuery) -> list[Flag]:
    """The flags that say that something may be missing of what the query reads."""
    flags: list[Flag] = list(actual.telemetry_lost)
    if query.keys and "dropped_attributes" in actual.flags:
        flags.append("dropped_attributes")
    return flags

"""Parts of an invocation that are kept only if a configured scorer reads them.

Most scorers need neither the spans nor what a model said before its final response. Keeping them
for everybody would double the memory of an invocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

SpanStatus = Literal["unset", "ok", "error"]


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span of an invocation, with the attributes that a scorer reads."""

    span_id: str
    parent_id: str | None = None
    """The span above it in the same invocation; `None`: there is none."""
    name: str = ""
    status: SpanStatus = "unset"
    start_ns: int | None = None
    end_ns: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """JSON values by key."""
    too_long: tuple[str, ...] = ()
    """Keys of attributes whose values are too long to be kept."""

    @property
    def duration_s(self) -> float | None:
        """Seconds from start to end; `None` if not known, or if the end is before the start."""
        return seconds(self.start_ns, self.end_ns)


@dataclass(frozen=True, slots=True)
class Extras:
    """What a scorer needs beside the usual parts of an invocation: its attribute `extras`."""

    span_attributes: frozenset[str] | None = None
    """Keep the spans, with the attributes of these keys; `None`: keep no spans."""
    model_texts: bool = False
    """Keep what the model said in each call."""

    def __or__(self, other: Extras) -> Extras:
        """What one of the two needs."""
        keys = [one.span_attributes for one in (self, other) if one.span_attributes is not None]
        attributes = frozenset[str]().union(*keys) if keys else None
        return Extras(attributes, self.model_texts or other.model_texts)


NO_EXTRAS = Extras()


def extras_of(scorers: Iterable[object]) -> Extras:
    """What any of the scorers needs. A scorer without the attribute `extras` needs nothing."""
    needed = (getattr(scorer, "extras", NO_EXTRAS) for scorer in scorers)
    return reduce(Extras.__or__, needed, NO_EXTRAS)


def seconds(start_ns: int | None, end_ns: int | None) -> float | None:
    """Seconds between two times; `None` if one is not known, or if the end is before the start."""
    if start_ns is None or end_ns is None or end_ns < start_ns:
        return None
    return (end_ns - start_ns) / 1e9

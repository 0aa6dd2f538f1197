"""Conditions on a span and on the spans around it, as in the span queries of pydantic-evals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from pathgauge.scorers.authoring.extras import SpanStatus
from pathgauge.scorers.authoring.options import FrozenMapping
from pathgauge.scorers.matching.matchers import read
from pathgauge.scorers.matching.patterns import BoundedPattern
from pathgauge.scorers.types import Json

_RANGES = (
    ("min_duration", "max_duration"),
    ("min_child_count", "max_child_count"),
    ("min_descendant_count", "max_descendant_count"),
    ("min_depth", "max_depth"),
)
_PRUNED = (
    *("some_descendant_has", "all_descendants_have", "no_descendant_has"),
    *("some_ancestor_has", "all_ancestors_have", "no_ancestor_has"),
)
"""Conditions to which `stop_recursing_when` applies."""
_UNDONE_BY_MORE_SPANS = (
    *("not_", "stop_recursing_when", "max_child_count", "max_descendant_count", "max_depth"),
    *("all_children_have", "no_child_has", "all_descendants_have", "no_descendant_has"),
    *("all_ancestors_have", "no_ancestor_has"),
)


@dataclass(frozen=True)
class SpanQuery:
    """Conditions that must all hold for one span. Names and meaning are those of pydantic-evals."""

    name_equals: str | None = None
    name_contains: str | None = None
    name_matches_regex: str | None = None
    """A regular expression that matches from the start of the name on."""

    has_attributes: Mapping[str, Json] | None = None
    """Attributes with their values, which may be matchers. Objects and lists also match if the
    attribute has them as JSON text.
    """
    has_attribute_keys: tuple[str, ...] | None = None
    has_status: SpanStatus | None = None
    min_duration: float | None = None
    """Seconds."""
    max_duration: float | None = None
    """Seconds."""

    not_: SpanQuery | None = None
    and_: tuple[SpanQuery, ...] | None = None
    or_: tuple[SpanQuery, ...] | None = None

    min_child_count: int | None = None
    max_child_count: int | None = None
    some_child_has: SpanQuery | None = None
    all_children_have: SpanQuery | None = None
    no_child_has: SpanQuery | None = None

    stop_recursing_when: SpanQuery | None = None
    """Do not look beyond such spans for descendants and ancestors; the span itself is included."""
    min_descendant_count: int | None = None
    max_descendant_count: int | None = None
    some_descendant_has: SpanQuery | None = None
    all_descendants_have: SpanQuery | None = None
    no_descendant_has: SpanQuery | None = None

    min_depth: int | None = None
    """Ancestors of the span; the entry span of the invocation has none."""
    max_depth: int | None = None
    some_ancestor_has: SpanQuery | None = None
    all_ancestors_have: SpanQuery | None = None
    no_ancestor_has: SpanQuery | None = None

    def __post_init__(self) -> None:
        conditions = self.conditions
        if not conditions.keys() - {"stop_recursing_when"}:
            raise ValueError("found no condition, expected at least one")
        for name, condition in conditions.items():
            if condition in ("", (), {}):
                raise ValueError(f"{name}: found nothing, expected a condition")
        if "stop_recursing_when" in conditions and not conditions.keys() & set(_PRUNED):
            raise ValueError(
                "stop_recursing_when: found alone, expected beside a condition on descendants or"
                " ancestors"
            )
        self._check_ranges()
        if self.has_attributes is not None:
            object.__setattr__(self, "has_attributes", FrozenMapping(self.has_attributes))
        _ = self.attributes, self.pattern  # raises ValueError for an invalid matcher or pattern

    @cached_property
    def conditions(self) -> Mapping[str, Any]:
        """The conditions that are given, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @cached_property
    def attributes(self) -> Mapping[str, Json]:
        """`has_attributes` with its matchers."""
        try:
            found: Mapping[str, Json] = read(dict(self.has_attributes or {}))
        except ValueError as error:
            raise ValueError(f"has_attributes: {error}") from error
        return found

    @cached_property
    def pattern(self) -> BoundedPattern | None:
        """`name_matches_regex`, compiled."""
        if self.name_matches_regex is None:
            return None
        try:
            return BoundedPattern(self.name_matches_regex)
        except ValueError as error:
            raise ValueError(f"name_matches_regex: {error}") from error

    @property
    def parts(self) -> Iterator[SpanQuery]:
        """The queries directly inside this one."""
        for condition in self.conditions.values():
            if isinstance(condition, SpanQuery):
                yield condition
            elif isinstance(condition, tuple):
                yield from (part for part in condition if isinstance(part, SpanQuery))

    @cached_property
    def keys(self) -> frozenset[str]:
        """The attributes that this query and the queries inside it read."""
        inside = (part.keys for part in self.parts)
        return frozenset().union(self.attributes, self.has_attribute_keys or (), *inside)

    @cached_property
    def size(self) -> int:
        """The number of conditions, with those of the queries inside."""
        return len(self.conditions) + sum(part.size for part in self.parts)

    @cached_property
    def survives_more_spans(self) -> bool:
        """Whether a span that matches still matches when missing spans are added."""
        own = not self.conditions.keys() & set(_UNDONE_BY_MORE_SPANS)
        return own and all(part.survives_more_spans for part in self.parts)

    def _check_ranges(self) -> None:
        for low, high in _RANGES:
            bounds = [(name, getattr(self, name)) for name in (low, high)]
            for name, bound in bounds:
                if bound is not None and not bound >= 0:
                    raise ValueError(f"{name}: found {bound}, expected a number from 0")
            given = [bound for _, bound in bounds if bound is not None]
            if sorted(given) != given:
                raise ValueError(
                    f"{low}, {high}: found {given[0]} and {given[1]}, expected a maximum that is"
                    " not below the minimum"
                )

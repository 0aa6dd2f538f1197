"""Finds the spans that match a query.

Each condition is decided for all spans in one pass over the tree, from the leaves up or from the
root down. So the time grows with the spans times the conditions, however deeply queries and spans
are nested.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import ge, le
from typing import Any, TypeAlias

from pathgauge.scorers.authoring.extras import SpanRecord
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.matchers import Ignored, matches
from pathgauge.scorers.matching.span_tree import SpanTree
from pathgauge.scorers.matching.wording import plural
from pathgauge.scorers.tool_use.span_query import SpanQuery
from pathgauge.scorers.types import Json

MAX_STEPS = 500_000
"""Spans times conditions."""
MAX_NAMES = 500
"""Different span names that are compared with a regular expression."""

_Found: TypeAlias = list[bool]
"""Whether each span matches."""


def matching_spans(query: SpanQuery, spans: Sequence[SpanRecord]) -> list[int]:
    """The positions of the spans that match. Raises `TooLongError`."""
    if len(spans) * query.size > MAX_STEPS:
        raise TooLongError(
            f"{len(spans):,} {plural(len(spans), 'span')} and {query.size} conditions; at most"
            f" {MAX_STEPS:,} of both multiplied are compared"
        )
    found = _Search(SpanTree.of(spans)).found(query)
    return [at for at, matched in enumerate(found) if matched]


class _Search:
    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree

    def found(self, query: SpanQuery) -> _Found:
        """Whether each span matches the query."""
        found = [True] * len(self._tree.spans)
        for name, condition in query.conditions.items():
            if name != "stop_recursing_when":
                holds = self._holds(name, condition, query)
                found = [one and other for one, other in zip(found, holds, strict=True)]
        return found

    def _holds(self, name: str, condition: Any, query: SpanQuery) -> _Found:
        """Whether one condition of the query holds for each span."""
        if name in _OF_SPAN:
            test = _OF_SPAN[name](query)
            return [test(span) for span in self._tree.spans]
        if name in _COUNTS:
            counts, compare = _COUNTS[name]
            return [compare(count, condition) for count in counts(self._tree)]
        if name in _LOGIC:
            parts = condition if isinstance(condition, tuple) else (condition,)
            return [_LOGIC[name](row) for row in zip(*map(self.found, parts), strict=True)]
        quantifier, relation = _QUANTIFIERS[name]
        wanted = self.found(condition)
        if quantifier == "all":  # none of them lacks it
            wanted = [not one for one in wanted]
        some = relation(self._tree, wanted, self._stops(query))
        return some if quantifier == "some" else [not one for one in some]

    def _stops(self, query: SpanQuery) -> _Found:
        """Whether each span is one beyond which the query does not look."""
        if query.stop_recursing_when is None:
            return [False] * len(self._tree.spans)
        return self.found(query.stop_recursing_when)


def _name_test(query: SpanQuery) -> Callable[[SpanRecord], bool]:
    names: set[str] = set()

    @cache
    def test(name: str) -> bool:
        names.add(name)
        if len(names) > MAX_NAMES:
            raise TooLongError(
                f"more than {MAX_NAMES} names of spans to compare with the pattern"
                f" {query.name_matches_regex!r}"
            )
        return query.pattern is not None and query.pattern.matches_start(name)

    return lambda span: test(span.name)


def _attribute_test(query: SpanQuery) -> Callable[[SpanRecord], bool]:
    return lambda span: all(
        _attribute_matches(span, key, expected) for key, expected in query.attributes.items()
    )


def _attribute_matches(span: SpanRecord, key: str, expected: Json) -> bool:
    if key in span.too_long:
        raise TooLongError(f"the attribute {key} of the span {span.name} is too long to compare")
    if key not in span.attributes:
        return isinstance(expected, Ignored)
    value = span.attributes[key]
    if matches(expected, value):
        return True
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return False
    try:
        return matches(expected, json.loads(value))
    except (ValueError, RecursionError):
        return False


def _key_test(query: SpanQuery) -> Callable[[SpanRecord], bool]:
    keys = query.has_attribute_keys or ()
    return lambda span: all(key in span.attributes or key in span.too_long for key in keys)


def _duration_test(
    bound: float | None, compare: Callable[[float, float], bool]
) -> Callable[[SpanRecord], bool]:
    """A span whose duration is not known is neither short nor long."""

    def test(span: SpanRecord) -> bool:
        seconds = span.duration_s
        return seconds is not None and bound is not None and compare(seconds, bound)

    return test


_OF_SPAN: Mapping[str, Callable[[SpanQuery], Callable[[SpanRecord], bool]]] = {
    "name_equals": lambda query: lambda span: span.name == query.name_equals,
    "name_contains": lambda query: lambda span: (query.name_contains or "") in span.name,
    "name_matches_regex": _name_test,
    "has_attributes": _attribute_test,
    "has_attribute_keys": _key_test,
    "has_status": lambda query: lambda span: span.status == query.has_status,
    "min_duration": lambda query: _duration_test(query.min_duration, ge),
    "max_duration": lambda query: _duration_test(query.max_duration, le),
}
_LOGIC: Mapping[str, Callable[[tuple[bool, ...]], bool]] = {
    "not_": lambda row: not any(row),
    "and_": all,
    "or_": any,
}


def _child_counts(tree: SpanTree) -> list[int]:
    return [len(children) for children in tree.children]


def _descendant_counts(tree: SpanTree) -> list[int]:
    counts = [0] * len(tree.spans)
    for at in reversed(tree.downwards):
        if (parent := tree.parents[at]) is not None:
            counts[parent] += 1 + counts[at]
    return counts


def _depths(tree: SpanTree) -> list[int]:
    depths = [0] * len(tree.spans)
    for at in tree.downwards:
        if (parent := tree.parents[at]) is not None:
            depths[at] = depths[parent] + 1
    return depths


_COUNTS: Mapping[str, tuple[Callable[[SpanTree], list[int]], Callable[[int, int], bool]]] = {
    "min_child_count": (_child_counts, ge),
    "max_child_count": (_child_counts, le),
    "min_descendant_count": (_descendant_counts, ge),
    "max_descendant_count": (_descendant_counts, le),
    "min_depth": (_depths, ge),
    "max_depth": (_depths, le),
}


def _some_child(tree: SpanTree, wanted: _Found, stops: _Found) -> _Found:
    return [any(wanted[child] for child in children) for children in tree.children]


def _some_descendant(tree: SpanTree, wanted: _Found, stops: _Found) -> _Found:
    some = [False] * len(tree.spans)
    for at in reversed(tree.downwards):
        if (parent := tree.parents[at]) is not None:
            some[parent] = some[parent] or wanted[at] or (some[at] and not stops[at])
    return some


def _some_ancestor(tree: SpanTree, wanted: _Found, stops: _Found) -> _Found:
    some = [False] * len(tree.spans)
    for at in tree.downwards:
        if (parent := tree.parents[at]) is not None:
            some[at] = wanted[parent] or (some[parent] and not stops[parent])
    return some


_QUANTIFIERS = {
    "some_child_has": ("some", _some_child),
    "all_children_have": ("all", _some_child),
    "no_child_has": ("no", _some_child),
    "some_descendant_has": ("some", _some_descendant),
    "all_descendants_have": ("all", _some_descendant),
    "no_descendant_has": ("no", _some_descendant),
    "some_ancestor_has": ("some", _some_ancestor),
    "all_ancestors_have": ("all", _some_ancestor),
    "no_ancestor_has": ("no", _some_ancestor),
}

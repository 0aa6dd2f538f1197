"""The registry classifies spans with all dialects, and merges their fields in order of precedence.

For each field, the GenAI conventions come first and the additions of the instrumentations second,
unless an instrumentation outranks the conventions. Only dialects that match a span of the trace
contribute fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import NamedTuple, get_args

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths
from pathgauge.collector.core.invocations.dialects.field_plan import FieldPlan
from pathgauge.collector.core.invocations.dialects.genai import GENAI, is_unknown_operation
from pathgauge.collector.core.invocations.dialects.shape_cache import ShapeCache
from pathgauge.collector.core.invocations.dialects.unknown import adds_to_conventions, unknown
from pathgauge.collector.core.invocations.dialects.vocabulary import (
    is_infrastructure,
    may_speak,
    speaks_of_agents,
)
from pathgauge.collector.core.otlp.key_prefixes import KeyPrefixes
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.reading_budget import spend

_MAX_SCOPES, _MAX_SHAPES, _MAX_PLANS = 1024, 2048, 128
"""How many of each are remembered."""

_KINDS = frozenset(get_args(Kind))

_EntryHook = Callable[[Span], bool]

Classified = tuple[Kind, tuple[Dialect, ...]]
"""What a span represents, and the dialects that match it."""

NOTHING: Classified = "other", ()
"""A span that no dialect matches and that does not speak of agents. Compared by identity."""


class _OfScope(NamedTuple):
    """What is known of the spans of an instrumentation scope by its name."""

    is_claimed: bool
    """Whether a dialect claims it."""
    possible: tuple[Dialect, ...]
    """The dialects that may match its spans."""
    may_be_entry: _EntryHook
    is_known: bool
    """Whether it has none but known spans."""


class Registry:
    """The dialects that read traces."""

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        """`dialects` in the order in which they classify a span. The GenAI conventions are always
        included, at the end.
        """
        self.dialects = (*(dialect for dialect in dialects if dialect is not GENAI), GENAI)
        self.fallback = unknown(self._is_unknown)
        """Reads what none of the dialects understands."""
        self._precedence = [*sorted(self.dialects, key=_rank), self.fallback]
        self._names = tuple(name for dialect in self.dialects for name in dialect.names)
        self._entry_names = tuple(name for one in self.dialects for name in one.entry_names)
        self._key_prefixes = KeyPrefixes(
            dict.fromkeys(prefix for one in (GENAI, *self.dialects) for prefix in one.key_prefixes)
        )
        self._matching: ShapeCache[tuple[Dialect, ...]] = ShapeCache(_MAX_SHAPES)
        """Cache of the matching dialects by scope, name and attribute keys: there are few such
        combinations, compared with the number of spans.
        """
        self._speaking: ShapeCache[bool] = ShapeCache(_MAX_SHAPES)
        """Cache of which shapes speak of agents."""
        self._scopes: ShapeCache[_OfScope] = ShapeCache(_MAX_SCOPES)
        self.plan = lru_cache(_MAX_PLANS)(self._plan)

    @property
    def content_settings(self) -> dict[str, str]:
        """The setting that makes an instrumentation record content, by the name of its dialect."""
        known = {one.name: one.content_setting for one in self.dialects if one.content_setting}
        return {one.name: known.get(one.name, "") for one in self.dialects}

    def classify(self, span: Span) -> Classified:
        """What a span represents, and the dialects that match it. Raises `ValueError` if a dialect,
        which may be of another package, returns a kind that does not exist: invocations would be
        missing, and nobody would know why.
        """
        if not self.may_matter(span):
            return NOTHING
        matching = self._matching_of(span)
        for dialect in matching:
            kind = dialect.kind(span)
            if kind is None:
                continue
            if kind not in _KINDS:
                text = f"the dialect {dialect.name} returned the kind {kind!r}"
                raise ValueError(f"{text}, expected None or one of {', '.join(get_args(Kind))}")
            with_fallback = dialect is GENAI and self.fallback in matching
            if with_fallback and not adds_to_conventions(span):
                return kind, (GENAI,)
            return kind, matching
        return "other", matching

    def may_matter(self, span: Span) -> bool:
        """Whether a dialect may match a span, or the span may speak of agents, without decoding its
        attributes. The traces of most services have no such span.
        """
        spend()
        return self._may_match(span) or self._may_be_unknown(span)

    def _matching_of(self, span: Span) -> tuple[Dialect, ...]:
        """The dialects that match a span; the fallback if no instrumentation's dialect does."""
        shape = _shape(span)
        matching = self._matching.get(shape)
        if matching is None:
            possible = self._by_scope(span.scope.name).possible
            matching = tuple(dialect for dialect in possible if dialect.matches(span))
            if matching in ((), (GENAI,)) and self.fallback.matches(span):
                matching = (*matching, self.fallback)
            self._matching.keep(shape, matching)
        return matching

    def _has_only_conventions(self, matching: tuple[Dialect, ...]) -> bool:
        return all(one is GENAI or one is self.fallback for one in matching)

    def _is_unknown(self, span: Span) -> bool:
        return self.fallback in self._matching_of(span)

    def is_unread(self, span: Span, classified: Classified) -> bool:
        """Whether a span, as it was classified, speaks of agents, models or tools, and no dialect
        understands it.
        """
        kind, matching = classified
        if classified is NOTHING or not self._has_only_conventions(matching):
            return False
        if GENAI in matching and not is_unknown_operation(span):
            return False
        if not self._may_be_unknown(span):
            return False
        if kind != "other":
            return GENAI not in matching
        shape = _shape(span)
        speaking = self._speaking.get(shape)
        if speaking is None:
            speaking = speaks_of_agents((span.name, *span.attributes))
            self._speaking.keep(shape, speaking)
        return speaking

    def _may_be_unknown(self, span: Span) -> bool:
        """Whether a span may speak of agents, without decoding its attributes. If a dialect claims
        its scope, that knows what it leaves out.
        """
        return not self._by_scope(span.scope.name).is_known and may_speak(span.raw)

    def _may_match(self, span: Span) -> bool:
        """Whether a dialect may match a span, without decoding its attributes."""
        return (
            self._by_scope(span.scope.name).is_claimed
            or span.name.startswith(self._names)
            or self._key_prefixes.may_be_in(span.raw)
        )

    def may_be_entry(self, span: Span) -> bool:
        """Whether a span may be the entry span of an invocation. Called for every arriving span, so
        it decodes no attributes.
        """
        if span.name.startswith(self._entry_names):
            return True
        return self._by_scope(span.scope.name).may_be_entry(span)

    def _by_scope(self, scope: str) -> _OfScope:
        found = self._scopes.get(scope)
        return self._scopes.keep(scope, self._find_by_scope(scope)) if found is None else found

    def _find_by_scope(self, scope: str) -> _OfScope:
        claiming = tuple(one for one in self.dialects if scope.startswith(one.scopes))
        possible = tuple(
            one for one in self.dialects if one in claiming or one.key_prefixes or one.names
        )
        hooks = [
            one.may_be_entry
            for one in self.dialects
            if one.may_be_entry and (one in claiming or not one.scopes)
        ]
        return _OfScope(
            is_claimed=bool(claiming),
            possible=possible,
            may_be_entry=_any_of(hooks),
            is_known=bool(claiming) or is_infrastructure(scope),
        )

    def _plan(self, matching: frozenset[Dialect]) -> FieldPlan:
        """The field paths over all dialects of a trace."""
        order = [one for one in self._precedence if one in matching or one is GENAI]
        merged: dict[str, FieldPaths] = {}
        for field in fields(Fields):
            paths = (path for dialect in order for path in getattr(dialect.fields, field.name))
            merged[field.name] = tuple(dict.fromkeys(paths))
        return FieldPlan(Fields(**merged))


def _any_of(hooks: Sequence[_EntryHook]) -> _EntryHook:
    """One hook for all of them: it is called for every arriving span."""
    if len(hooks) == 1:
        return hooks[0]
    return lambda span: any(hook(span) for hook in hooks)


def _shape(span: Span) -> tuple[str, ...]:
    return (span.scope.name, span.scope.version, span.name, *span.attributes)


def _rank(dialect: Dialect) -> int:
    if dialect.outranks_conventions:
        return 0
    if dialect is GENAI:
        return 1
    return 2

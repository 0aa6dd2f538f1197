"""All dialects together: they tell what a span is, and give the one precedence of their fields.

The GenAI conventions come first in every field, then what each instrumentation adds, unless it says
more than they do. Only the fields of dialects that speak in a trace are looked for in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache

from pathgauge.collector.core.invocations.dialects.adk import ADK, OPENINFERENCE_ADK
from pathgauge.collector.core.invocations.dialects.agent_framework import AGENT_FRAMEWORK
from pathgauge.collector.core.invocations.dialects.autogen import AUTOGEN
from pathgauge.collector.core.invocations.dialects.claude_code import CLAUDE_CODE
from pathgauge.collector.core.invocations.dialects.crewai import CREWAI
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.genai import GENAI
from pathgauge.collector.core.invocations.dialects.haystack import HAYSTACK
from pathgauge.collector.core.invocations.dialects.langfuse import LANGFUSE
from pathgauge.collector.core.invocations.dialects.langsmith import LANGSMITH
from pathgauge.collector.core.invocations.dialects.llama_index import LLAMA_INDEX
from pathgauge.collector.core.invocations.dialects.mlflow import MLFLOW
from pathgauge.collector.core.invocations.dialects.openai_agents import OPENAI_AGENTS
from pathgauge.collector.core.invocations.dialects.openinference import OPENINFERENCE
from pathgauge.collector.core.invocations.dialects.openllmetry import (
    OPENLLMETRY,
    OPENLLMETRY_AGENTS,
)
from pathgauge.collector.core.invocations.dialects.pydantic_ai import PYDANTIC_AI
from pathgauge.collector.core.invocations.dialects.semantic_kernel import SEMANTIC_KERNEL
from pathgauge.collector.core.invocations.dialects.smolagents import SMOLAGENTS
from pathgauge.collector.core.invocations.dialects.strands import STRANDS
from pathgauge.collector.core.invocations.dialects.vercel import VERCEL
from pathgauge.collector.core.otlp.spans import Span

DIALECTS = (
    ADK,
    PYDANTIC_AI,
    STRANDS,
    AGENT_FRAMEWORK,
    SEMANTIC_KERNEL,
    AUTOGEN,
    HAYSTACK,
    VERCEL,
    CLAUDE_CODE,
    LANGSMITH,
    LANGFUSE,
    MLFLOW,
    LLAMA_INDEX,
    SMOLAGENTS,
    OPENINFERENCE_ADK,
    OPENINFERENCE,
    CREWAI,
    OPENLLMETRY_AGENTS,
    OPENLLMETRY,
    OPENAI_AGENTS,
    GENAI,
)
"""In the order in which they are asked what a span is: instrumentations before the conventions they
build on.
"""

_MAX_SCOPES, _MAX_SHAPES = 1024, 2048
"""Kept in mind at a time; senders may invent as many as they like."""


class Registry:
    """The dialects that traces are read with."""

    def __init__(self, dialects: Sequence[Dialect] = DIALECTS) -> None:
        """`dialects` in the order in which they are asked; the conventions are always among them,
        and last.
        """
        self.dialects = (*(dialect for dialect in dialects if dialect is not GENAI), GENAI)
        self._precedence = sorted(
            self.dialects,
            key=lambda one: 0 if one.outranks_conventions else 1 if one is GENAI else 2,
        )
        self._names = tuple(name for dialect in self.dialects for name in dialect.names)
        self._marks = tuple(
            dict.fromkeys(
                mark for dialect in (GENAI, *self.dialects) for mark in dialect.byte_marks
            )
        )
        self._anchor_names = tuple(
            prefix for dialect in self.dialects for prefix in dialect.entry_names
        )
        self._speaking: dict[tuple[str, ...], tuple[Dialect, ...]] = {}
        """By scope, name and attribute keys, which are few beside the spans that have them."""
        self._by_scope = lru_cache(_MAX_SCOPES)(self._find_by_scope)
        self.fields = lru_cache(_MAX_SCOPES)(self._merge)

    def classify(self, span: Span) -> tuple[Kind, tuple[Dialect, ...]]:
        """What a span stands for, and the dialects that it speaks."""
        known_scope, dialects, _ = self._by_scope(span.scope.name)
        if not (
            known_scope
            or span.name.startswith(self._names)
            or any(mark in span.raw for mark in self._marks)
        ):
            return "other", ()
        shape = (span.scope.name, span.scope.version, span.name, *span.attributes)
        speaking = self._speaking.get(shape)
        if speaking is None:
            if len(self._speaking) == _MAX_SHAPES:
                self._speaking.clear()
            speaking = self._speaking[shape] = tuple(
                dialect for dialect in dialects if dialect.matches(span)
            )
        for dialect in speaking:
            kind = dialect.kind(span)
            if kind is not None:
                return kind, speaking
        return "other", speaking

    def may_be_entry(self, span: Span) -> bool:
        """Whether a span may be the top-most one of an invocation; cheap, as it is asked of every
        arriving span.
        """
        if span.name.startswith(self._anchor_names):
            return True
        entry_hooks = self._by_scope(span.scope.name)[2]
        return bool(entry_hooks) and any(may_be_entry(span) for may_be_entry in entry_hooks)

    def _find_by_scope(
        self, scope: str
    ) -> tuple[bool, tuple[Dialect, ...], tuple[Callable[[Span], bool], ...]]:
        """Whether a dialect claims the scope, the dialects that may speak in it, and what tells the
        anchors in it.
        """
        claiming = tuple(dialect for dialect in self.dialects if scope.startswith(dialect.scopes))
        possible = tuple(
            dialect
            for dialect in self.dialects
            if dialect in claiming or dialect.byte_marks or dialect.names
        )
        entry_hooks = tuple(
            one.may_be_entry
            for one in self.dialects
            if one.may_be_entry and (one in claiming or not one.scopes)
        )
        return bool(claiming), possible, entry_hooks

    def _merge(self, speaking: frozenset[Dialect]) -> Fields:
        """The places of every field over the dialects that speak in a trace."""
        order = [dialect for dialect in self._precedence if dialect in speaking or dialect is GENAI]
        return Fields(
            **{
                f.name: tuple(
                    dict.fromkeys(place for d in order for place in getattr(d.fields, f.name))
                )
                for f in fields(Fields)
            }
        )


BUILT_IN = Registry()

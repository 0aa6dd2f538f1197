"""All dialects, and the one precedence of their fields: the GenAI conventions first, then what each instrumentation adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from collector.dialects.adk import ADK
from collector.dialects.dialect import Fields, Kind, MessageReader
from collector.dialects.genai import GENAI
from collector.dialects.messages import parse_messages
from collector.dialects.pydantic_ai import PYDANTIC_AI
from collector.spans import Span

DIALECTS = (ADK, PYDANTIC_AI, GENAI)
"""In the order in which they are asked what a span is: instrumentations before the conventions they build on."""

_PRECEDENCE = (GENAI, *(dialect for dialect in DIALECTS if dialect is not GENAI))


def _merged() -> Fields:
    merged = {f.name: tuple(dict.fromkeys(key for d in _PRECEDENCE for key in getattr(d.fields, f.name))) for f in fields(Fields)}
    return Fields(**merged)


FIELDS = _merged()
"""The attribute keys of every field over all dialects."""

ANCHOR_NAMES = tuple(prefix for dialect in DIALECTS for prefix in dialect.anchors)

MESSAGE_READERS: dict[str, MessageReader] = {
    key: dialect.messages or parse_messages
    for dialect in reversed(_PRECEDENCE)
    for key in dialect.fields.input_messages + dialect.fields.output_messages
}


def classify(span: Span) -> tuple[Kind, str | None]:
    """What a span stands for, and the name of the dialect that it speaks first."""
    name = None
    for dialect in DIALECTS:
        if dialect.speaks(span):
            name = name or dialect.name
            kind = dialect.kind(span)
            if kind is not None:
                return kind, name
    return "other", name


def may_be_anchor(span: Span) -> bool:
    """Whether a span may be the top-most one of an invocation; cheap, as it is asked of every arriving span."""
    return span.name.startswith(ANCHOR_NAMES)


def muted_keys(model_spans: Sequence[Span]) -> frozenset[str]:
    """The keys under which an empty object means that content was not captured, judged by an invocation's model calls."""
    return frozenset(key for dialect in DIALECTS if dialect.muted for key in dialect.muted(model_spans))


def first(spans: Iterable[Span], keys: tuple[str, ...], muted: frozenset[str] = frozenset()) -> Any:
    """The first value under `keys`, in the order of `spans`, that is neither empty text nor a muted empty object."""
    for span in spans:
        attributes = span.attributes
        for key in keys:
            value = attributes.get(key)
            if value is not None and value != "" and not (value == "{}" and key in muted):
                return value
    return None

"""Splunk's instrumentations of LangChain and of the OpenAI Agents SDK.

Recognised by `gen_ai.evaluation.sampled`, which all their spans have, or `gen_ai.step.name`. Spans
follow the GenAI conventions; a step of a graph has no operation. A model call of OpenAI Agents that
failed has no error, but neither has it a model: that is known from the reply. An agent that is
called as a tool is a sibling of its caller.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Kind
from pathgauge.collector.core.invocations.dialects.genai import CONTENT_SETTING
from pathgauge.collector.core.otlp.spans import Span

_SAMPLED, _STEP = "gen_ai.evaluation.sampled", "gen_ai.step.name"
_OPERATION, _MODEL = "gen_ai.operation.name", "gen_ai.request.model"


def matches(span: Span) -> bool:
    """By attributes that only its spans have."""
    return _SAMPLED in span.attributes or _STEP in span.attributes


def kind(span: Span) -> Kind | None:
    """Steps only connect other spans, which follow the conventions."""
    is_step = _STEP in span.attributes and _OPERATION not in span.attributes
    return "other" if is_step else None


def failure(span: Span) -> str | None:
    """That a model call got no reply."""
    return "no reply" if span.attributes.get(_MODEL) == "unknown_model" else None


SPLUNK = Dialect(
    name="splunk",
    before=("genai",),
    key_prefixes=(_SAMPLED, _STEP),
    matches=matches,
    kind=kind,
    reads=(_SAMPLED, _STEP, _OPERATION, _MODEL),
    loses_parent=True,
    failure=failure,
    content_setting=CONTENT_SETTING,
)

"""Reads model calls: which model, how many tokens, and what the model said."""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, first
from pathgauge.collector.core.invocations.errors import error_of
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import said
from pathgauge.collector.core.invocations.messages.values import as_id, as_int
from pathgauge.collector.core.invocations.node import Node
from pathgauge.scorers.types import ModelCall

MAX_TEXT = 4_000
"""Characters of what a model said in one call; the rest is cut off."""

_NO_MODELS = ("none", "unknown", "unknown_model")
"""Micrometer, OpenInference for Java and Splunk's instrumentations write these for a missing
value.
"""


def model_call(step: Step, *, with_text: bool) -> ModelCall:
    """The model call of a step. `with_text` also reads what the model said."""
    node = step.node
    input_tokens = _count(node, node.fields.input_tokens)
    output_tokens = _count(node, node.fields.output_tokens)
    if not input_tokens and not output_tokens:  # Some write zeros if nothing was counted.
        input_tokens = output_tokens = None
    return ModelCall(
        span_id=node.span.span_id,
        agent=node.worker(),
        run=step.run,
        model=model_of(node),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        error=error_of(node),
        start_ns=node.span.start_ns,
        end_ns=node.span.end_ns,
        cached_tokens=_count(node, node.fields.cached_tokens),
        cache_write_tokens=_count(node, node.fields.cache_write_tokens),
        text=_text(step) if with_text else None,
    )


def model_of(node: Node) -> str | None:
    """The model that answered, else the one that was asked."""
    response_model = _model_at(node, node.fields.response_model)
    return response_model or _model_at(node, node.fields.request_model)


def _model_at(node: Node, paths: FieldPaths) -> str | None:
    name = as_id(first(node.spans, paths))
    return None if name in _NO_MODELS else name


def stated_total(node: Node) -> ModelCall:
    """The tokens that an agent span states, in the form of one model call."""
    spans = node.own_spans
    return ModelCall(
        span_id=node.span.span_id,
        input_tokens=as_int(first(spans, node.fields.total_input_tokens)),
        output_tokens=as_int(first(spans, node.fields.total_output_tokens)),
    )


def _count(node: Node, paths: FieldPaths) -> int | None:
    return as_int(first(node.spans, paths))


def _text(step: Step) -> str | None:
    """`None` if no output is recorded; empty if the model only asked for tools."""
    output = step.content.output
    return said(output)[:MAX_TEXT] if output else None

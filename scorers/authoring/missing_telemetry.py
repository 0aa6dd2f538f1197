"""Scores without value for invocations whose telemetry is incomplete: what may be missing is
neither 0 nor an error of the agent. Each function returns `None` if nothing seems to be missing.
"""

from __future__ import annotations

from pathgauge.scorers.types import Flag, Invocation, Reason, Score

_LOST: frozenset[Flag] = frozenset({"lost_parents", "lost_tool_calls", "lost_model_calls"})
_TOOLS: frozenset[Flag] = frozenset({"no_tool_spans", "dropped_spans"})
_MODELS: frozenset[Flag] = frozenset({"dropped_spans", "llm_detail_unreliable"})


def spans_lost(actual: Invocation) -> Score | None:
    """If flags say that spans were lost on their way."""
    return _flagged(actual, _LOST, "lost_telemetry", "spans were lost")


def tools_unknown(actual: Invocation) -> Score | None:
    """If flags say that tool calls may be missing."""
    return spans_lost(actual) or _flagged(
        actual, _TOOLS, "tools_not_recorded", "tool calls may be missing from the telemetry"
    )


def models_incomplete(actual: Invocation) -> Score | None:
    """If flags say that model calls may be missing."""
    return spans_lost(actual) or _flagged(
        actual, _MODELS, "incomplete", "model calls may be missing from the telemetry"
    )


def models_unknown(actual: Invocation) -> Score | None:
    """As `models_incomplete`, and also without any model call: an agent that seems to call no model
    is one whose model calls are not traced.
    """
    if incomplete := models_incomplete(actual):
        return incomplete
    if not actual.model_calls:
        return Score.not_evaluated("incomplete", "no model calls were recorded")
    return None


def _flagged(
    actual: Invocation, flags: frozenset[Flag], reason: Reason, explanation: str
) -> Score | None:
    found = flags & actual.flags
    if not found:
        return None
    return Score.not_evaluated(reason, f"{explanation}: {', '.join(sorted(found))}")

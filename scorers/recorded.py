"""Whether the telemetry of an invocation holds what a scorer needs: an invocation comes in, a score that says what is missing goes out."""

from __future__ import annotations

from scorers.types import Flag, Invocation, Score

_INCOMPLETE: frozenset[Flag] = frozenset({"no_tool_spans", "dropped_spans"})


def tools_unknown(actual: Invocation) -> Score | None:
    """The score of an invocation whose telemetry may lack tool calls; `None` when it has them all."""
    lacking = sorted(_INCOMPLETE & actual.flags)
    if not lacking:
        return None
    return Score.not_evaluated("tools_not_recorded", f"tool calls may be missing from the telemetry: {', '.join(lacking)}")

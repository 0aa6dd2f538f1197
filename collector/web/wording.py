"""Words for what the pages show: verdicts, states, marks, flags and reasons."""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.api.models import State
from pathgauge.collector.core.drift.drift import Against
from pathgauge.collector.core.evidence.comparison import Mark
from pathgauge.collector.core.evidence.miss import Kind
from pathgauge.scorers.types import Flag

VERDICTS: Mapping[str, str] = {
    "passed": "passed",
    "failed": "failed",
    "error": "scorer error",
    "informational": "no threshold",
    "not_evaluated": "not scored",
}
STATES: Mapping[State, str] = {
    "ok": "ok",
    "breached": "breached",
    "few_samples": "few samples",
    "no_threshold": "no threshold",
}
MARKS: Mapping[Mark, str] = {
    "=": "matched",
    "~": "other arguments",
    "?": "arguments not recorded",
    "-": "missing",
    "+": "unexpected",
}
FLAGS: Mapping[Flag, str] = {
    "content_missing": "The telemetry has no messages; the framework may need a switch for them.",
    "truncated": "Text was cut before it arrived, for instance by a limit of the SDK.",
    "redacted": "Text was removed before it was stored.",
    "orphan_spans": "The parents of some spans never arrived.",
    "missing_root": "The root span of the trace never arrived.",
    "dropped_attributes": "The SDK dropped attributes, because a span had too many.",
    "dropped_spans": "Spans were dropped, because the trace was too large.",
    "lost_parents": "The parents of some spans never arrived, so other spans were lost, too.",
    "lost_model_calls": "Spans of model calls were lost.",
    "lost_tool_calls": "Spans of tool calls were lost.",
    "llm_detail_unreliable": "Details of the model requests contradict each other.",
    "no_tool_spans": "The telemetry has no spans of tools, so the tool calls are not known.",
    "scenario_conflict": "Spans of this invocation name different scenarios.",
    "clock_skew": "The clocks of the senders differ, so times may be wrong.",
    "unknown_dialect": "No dialect understands this telemetry; what is certain was read.",
}
AGAINST: Mapping[Against, str] = {
    "threshold": "the threshold or the objective",
    "learned": "the scores of the last days",
    "version": "the version before",
    "scenarios": "the baseline of each scenario",
}
MISSES: Mapping[Kind, str] = {
    "missing": "missing call",
    "unexpected": "unexpected call",
    "argument": "wrong argument",
    "other": "other differences",
}
DRIFTS: Mapping[str, str] = {
    "worse": "became worse",
    "suspected": "some evidence",
    "steady": "no sign",
    "learning": "learning",
}
_REASONS: Mapping[str, str] = {
    "no_scenario_id": "the invocation has no scenario id",
    "unknown_scenario": "no reference has this scenario id",
    "scenario_conflict": "its spans name different scenarios",
    "unexpected_turn": "the reference has no such turn",
    "incomplete": "its telemetry is incomplete",
    "lost_telemetry": "spans of the invocation were lost",
    "no_conversation_id": "the reference is a conversation, but there is no conversation id",
}


def verdict_text(verdict: str) -> str:
    """The verdict in words; that of a later version as it is."""
    return VERDICTS.get(verdict, verdict.replace("_", " "))


def reason_text(reason: str) -> str:
    """Why there is no reference or no score, in words."""
    return _REASONS.get(reason, reason.replace("_", " "))

"""The names that sinks use for verdicts."""

from __future__ import annotations

from pathgauge.collector.core.evaluations.evaluator import Verdict

OUTCOMES: dict[Verdict, str] = {
    "passed": "pass",
    "failed": "fail",
    "not_evaluated": "not_evaluated",
    "error": "error",
    "informational": "informational",
}
CONVERSATION_OUTCOMES: dict[Verdict, str] = {
    "passed": "pass",
    "failed": "fail",
    "informational": "informational",
}
"""A conversation in which no turn has a score is not counted. One whose scores have no mean, since
missing turns have no worst value to count as, is `not_evaluated`; only few scorers have that.
"""

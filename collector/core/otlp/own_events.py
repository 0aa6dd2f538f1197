"""Recognises evaluation events that pathgauge exported itself.

A collector between pathgauge and a backend may send these events back. They would open old traces
again, be scored, and be exported again in an endless loop.
"""

from __future__ import annotations

from pathgauge.collector.core.otlp.spans import LogRecord

SCOPE = "pathgauge"
"""The instrumentation scope of everything that pathgauge exports."""
EVALUATION_RESULT = "gen_ai.evaluation.result"


def is_own_event(record: LogRecord) -> bool:
    """Whether a log record is an evaluation event exported by pathgauge."""
    return record.scope.name == SCOPE and record.event_name == EVALUATION_RESULT

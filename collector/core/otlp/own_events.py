"""How evaluations are said in OTLP: the names of the event, and how to know our own when it comes
back.

A collector between us and a backend may send our events here. They would open traces anew that were
read long ago, and be scored for ever.
"""

from __future__ import annotations

from pathgauge.collector.core.otlp.spans import LogRecord

SCOPE = "pathgauge"
"""The instrumentation scope of everything that pathgauge says."""
EVALUATION_RESULT = "gen_ai.evaluation.result"


def is_own_event(record: LogRecord) -> bool:
    """Whether a log record is an evaluation that pathgauge exported."""
    return record.scope.name == SCOPE and record.event_name == EVALUATION_RESULT

"""Connects the API to the running engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathgauge.collector.api.models import Telemetry
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.config import Config
from pathgauge.collector.config.feedback import Feedback
from pathgauge.collector.service.engine import Engine
from pathgauge.collector.service.feedback import conversation_ids
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.collector.store.queries.reading import Reading


def sources_of(
    config: Config,
    engine: Engine,
    unready: Callable[[], list[str]],
    database: Reading | None = None,
) -> Sources:
    """Where the API finds its answers. `unready` returns why the collector accepts no spans.
    `database` opens results in PostgreSQL.
    """
    folder = None
    if config.store is not None and database is None:
        folder = config.folder / config.store.path

    def telemetry() -> Telemetry:
        counted = engine.counted
        return Telemetry(
            spans_received=counted.accepted.total(),
            spans_refused=counted.refused.total(),
            spans_dropped=counted.spans_dropped.total(),
            invocations_read=counted.invocations_read.total(),
            invocations_scored=counted.invocations_scored.total(),
            invocations_skipped=counted.invocations_skipped.total(),
            open_traces=engine.usage().pipeline.open_traces,
            unread_scopes={scope: n for (scope,), n in counted.unread_scopes.items()},
            unready=unready(),
        )

    def unknown() -> tuple[Sequence[UnknownScenario], int]:
        return engine.unknown_scenarios.snapshot()  # a process that becomes the gauge has others

    feedback = config.feedback or Feedback()
    return Sources(
        folder=folder,
        database=database,
        scores=engine.current_scores,
        unknown=unknown,
        references=engine.references,
        evaluator=engine.evaluator,
        drifts=engine.drifts,
        traffic=engine.traffic,
        telemetry=telemetry,
        is_standby=lambda: bool(engine.inactive()),
        is_busy=lambda: engine.usage().queued_bytes > 0,
        conversation_ids=conversation_ids(config),
        verdict_rules=feedback.rules(),
        session_bounds=config.sessions.bounds(),
        feedback_window=feedback.window,
    )

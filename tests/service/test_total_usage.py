"""What several scorers hold together: sums, the worst state, and the largest age."""

from __future__ import annotations

from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.service.total_usage import total
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Usage

RESULTS = Usage(
    used=1_000,
    capacity=9_000,
    kept=500,
    results_removed={"age": 4, "space": 1},
    feedback_removed={"age": 2, "space": 3},
    write_ahead=70,
)
FULL = Usage(
    state="full",
    reason="no space left",
    in_flight=10,
    used=2_000,
    capacity=2_000,
    kept=30,
    results_removed={"age": 1},
    write_ahead=5,
    requests=6,
    quarantined=1,
)
OK = Usage(in_flight=1, used=100, capacity=2_000, kept=20, requests=2, write_ahead=1)
PIPELINE = PipelineUsage(*range(1, 1 + len(PipelineUsage._fields)))


def test_the_worst_state_is_shown_with_the_sums_of_all_stores() -> None:
    found = total(
        [CollectorUsage(FULL, PIPELINE, 7, 3, 1.5), CollectorUsage(OK, PIPELINE, 1, 1, 9.0)],
        RESULTS,
    )
    assert found.store == Usage(
        state="full",
        reason="no space left",
        in_flight=11,
        used=3_100,
        capacity=13_000,
        kept=550,
        results_removed={"age": 5, "space": 1},
        feedback_removed={"age": 2, "space": 3},
        write_ahead=76,
        requests=8,
        quarantined=1,
    )
    assert found.pipeline == tuple(2 * one for one in PIPELINE)
    assert (found.queued_bytes, found.backlog_requests, found.backlog_age_s) == (8, 4, 9.0)


def test_without_scorers_only_the_results_count() -> None:
    assert total([], RESULTS) == CollectorUsage(RESULTS, PipelineUsage(), 0, 0, 0.0)

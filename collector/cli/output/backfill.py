"""The report of `pathgauge backfill`."""

from __future__ import annotations

from collections.abc import Iterator

from pathgauge.collector.offline.judge_check.cost import CheckCost
from pathgauge.collector.service.backfill.run import Report
from pathgauge.collector.service.backfill.series_file import NAME

_MAX_IDS = 5


def report_lines(report: Report, cost: CheckCost | None) -> Iterator[str]:
    """Lines of text."""
    position = report.position
    rate = report.traces / report.seconds if report.seconds else 0.0
    verb = "resumed" if report.resumed else "done"
    yield (
        f"{verb}: {report.traces} traces, {report.spans} spans, {report.evaluations} invocations in"
        f" {report.seconds:.1f} s ({rate:.0f} traces/s)"
    )
    if not position.traces:
        yield "the source has no trace that began in this time"
    if report.resumed:
        yield f"in all: {position.traces} traces, {position.spans} spans"
    if position.rejected:
        yield f"rejected {position.rejected} spans or log records that are not valid OTLP"
    if report.unreadable:
        some = ", ".join(report.unreadable[:_MAX_IDS])
        yield f"{len(report.unreadable)} traces could not be read, such as {some}"
    yield from report.notes
    if cost is not None:
        usd = "no price is known" if cost.usd is None else f"{cost.usd:.2f} US dollars"
        yield f"judges: {cost.codes.total()} requests ({usd})"
    if report.unjudged:
        reasons = ", ".join(f"{reason} {number}" for reason, number in report.unjudged.items())
        yield f"judges gave no score in {sum(report.unjudged.values())} cases: {reasons}"
    yield f"promtool tsdb create-blocks-from openmetrics {NAME} makes blocks for Prometheus"

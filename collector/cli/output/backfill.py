"""The report of `pathgauge backfill`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from pathgauge.collector.offline.judge_check.cost import CheckCost
from pathgauge.collector.service.backfill.run import Report
from pathgauge.collector.service.backfill.series_file import NAME
from pathgauge.scorers.matching.wording import counted

_MAX_IDS = 5


def report_lines(report: Report, cost: CheckCost | None, folder: Path) -> Iterator[str]:
    """Lines of text. The `folder` is the one that the backfill has written."""
    position = report.position
    rate = report.traces / report.seconds if report.seconds else 0.0
    verb = "resumed" if report.resumed else "done"
    yield (
        f"{verb}: {counted(report.traces, 'trace')}, {counted(report.spans, 'span')},"
        f" {counted(report.evaluations, 'invocation')} in {report.seconds:.1f} s"
        f" ({rate:.0f} traces/s)"
    )
    if not position.traces:
        yield "the source has no trace that began in this time"
    if report.resumed:
        yield f"in all: {counted(position.traces, 'trace')}, {counted(position.spans, 'span')}"
    if position.rejected:
        yield f"rejected {counted(position.rejected, 'record')} as invalid OTLP"
    if report.unreadable:
        some = ", ".join(report.unreadable[:_MAX_IDS])
        yield f"{counted(len(report.unreadable), 'trace')} could not be read, such as {some}"
    yield from report.notes
    if cost is not None:
        usd = "no price is known" if cost.usd is None else f"{cost.usd:.2f} US dollars"
        yield f"judges: {counted(cost.codes.total(), 'request')} ({usd})"
    if report.unjudged:
        reasons = ", ".join(f"{reason} {number}" for reason, number in report.unjudged.items())
        yield f"judges gave no score in {counted(sum(report.unjudged.values()), 'case')}: {reasons}"
    series = shlex.quote(str(folder / NAME))
    yield f"promtool tsdb create-blocks-from openmetrics {series} makes blocks for Prometheus"

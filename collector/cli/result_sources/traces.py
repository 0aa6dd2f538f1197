"""Traces from a store, as input of the commands that read trace files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pathgauge.collector.api import models
from pathgauge.collector.cli.result_sources.source import ResultSource, SourceError
from pathgauge.collector.offline.export_requests import export_requests
from pathgauge.collector.offline.trace_files import TraceFiles
from pathgauge.scorers.matching.wording import counted


def described(trace_id: str, trace: models.Trace) -> Iterator[str]:
    """Where a trace comes from, and what it lacks."""
    spans = sum(
        len(scope["spans"]) for group in trace.resourceSpans for scope in group["scopeSpans"]
    )
    if trace.source == "journal":
        yield f"trace {trace_id}: {counted(spans, 'span')} from the journal, as sent"
    else:
        yield (
            f"trace {trace_id}: {counted(spans, 'span')}, rebuilt from the evidence of its results;"
            " what was sent is no longer kept"
        )
    if not trace.complete:
        yield f"trace {trace_id}: parts were left out or cut, because it is too large"


def read_traces(
    source: ResultSource, trace_ids: Iterable[str], tenant: str | None
) -> Iterator[tuple[Path, TraceFiles]]:
    """Each trace with a path that names it. Raises `StoreError` for one that is not kept, or not
    kept in full: a reference of it would expect a part of what the run did.
    """
    for trace_id in trace_ids:
        trace = source.trace(trace_id, tenant)
        if not trace.complete:
            raise SourceError(
                f"trace {trace_id}: it was too large to be kept in full, so it cannot become a"
                " reference"
            )
        files = TraceFiles(notes=list(described(trace_id, trace)))
        for request in export_requests(trace.model_dump_json().encode()):
            files.spans.extend(request.spans)
            files.logs.extend(request.logs)
        yield Path(f"trace {trace_id}"), files

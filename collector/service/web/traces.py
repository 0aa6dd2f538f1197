"""The page `/debug/traces`: the open traces and what each of them waits for, as HTML or JSON.

It shows tenants and ids, and no other content of the telemetry. The totals are always available.
The list of traces comes from the pipeline thread; when that is too busy to answer in time, the page
shows the totals alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.service.web.debug_page import HEADERS, html_page, wants_json
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.scorers.matching.wording import counted

MAX_TRACES = 200
TIMEOUT_S = 3.0

TOO_BUSY = (
    f"The pipeline did not list the open traces within {TIMEOUT_S:g} s: it is busy, waits for the"
    " store, or has stopped. The totals are current."
)

_HEAD = (
    "<tr><th>tenant<th>trace<th>age<th>silent<th>spans<th>log records<th>looked at in<th>waits for"
)


Explain = Callable[[int], "Future[list[Waiting]]"]
"""Has the pipeline list the oldest open traces, at most as many as the argument says."""


def traces_page(
    usage: Callable[[], CollectorUsage], explain: Explain, timeout: float = TIMEOUT_S
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint. It waits at most `timeout` seconds for the pipeline."""

    async def page(request: Request) -> Response:
        render = _json if wants_json(request) else _html
        try:
            traces = await asyncio.wait_for(asyncio.wrap_future(explain(MAX_TRACES)), timeout)
        except TimeoutError:
            return render(usage(), None, 504)
        return render(usage(), traces, 200)

    return page


def _json(usage: CollectorUsage, traces: Sequence[Waiting] | None, status: int) -> Response:
    body: dict[str, Any] = {
        "open_traces": usage.pipeline.open_traces,
        "spilled_traces": usage.pipeline.spilled_traces,
        "retained_traces": usage.pipeline.retained_traces,
        "open_bytes": usage.pipeline.open_bytes,
        "max_open_bytes": usage.pipeline.max_open_bytes,
        "queued_bytes": usage.queued_bytes,
        "backlog_requests": usage.backlog_requests,
        "backlog_age_s": usage.backlog_age_s,
        "store_state": usage.store.state,
    }
    if traces is None:
        body["problem"] = TOO_BUSY
    else:
        body["traces"] = [asdict(trace) for trace in traces]
    return JSONResponse(body, status, HEADERS)


def _html(usage: CollectorUsage, traces: Sequence[Waiting] | None, status: int) -> Response:
    lines = [f'<tr><th>{name}<td class="number">{escape(text)}' for name, text in _totals(usage)]
    table = f"<p>{TOO_BUSY}" if traces is None else _table(usage.pipeline.open_traces, traces)
    totals = "\n".join(["<table>", *lines, "</table>"])
    return html_page("Open traces", f"{totals}\n{table}", status)


def _totals(usage: CollectorUsage) -> Iterator[tuple[str, str]]:
    pipeline = usage.pipeline
    yield "open", f"{pipeline.open_traces:,}"
    yield "of these spilled to the journal", f"{pipeline.spilled_traces:,}"
    yield "read, kept for late spans", f"{pipeline.retained_traces:,}"
    yield "bytes of open traces", f"{pipeline.open_bytes:,} of {pipeline.max_open_bytes:,}"
    yield "bytes of requests in the queue", f"{usage.queued_bytes:,}"
    yield "backlog: durable requests not processed", f"{usage.backlog_requests:,}"
    yield "the oldest of them waits, at most", f"{usage.backlog_age_s:.1f} s"
    yield "store", usage.store.state


def _table(open_traces: int, traces: Sequence[Waiting]) -> str:
    if not traces:
        return "<p>No trace is open."
    more = ""
    if len(traces) < open_traces:
        more = f"<p>The {len(traces)} oldest of {open_traces:,}."
    return "\n".join([more, "<table>", _HEAD, *map(_row, traces), "</table>"])


def _row(trace: Waiting) -> str:
    read_before = " (read before)" if trace.read_before else ""
    next_look = "now" if trace.looked_at_in <= 0 else f"{trace.looked_at_in:.1f} s"
    numbers = (f"{trace.age:.1f} s", f"{trace.silence:.1f} s", *_records(trace), next_look)
    return "".join(
        [
            f"<tr><td>{escape(trace.tenant)}",
            f'<td class="id">{escape(trace.trace_id)}{read_before}',
            *(f'<td class="number">{text}' for text in numbers),
            f"<td>{'<br>'.join(map(escape, trace.waits_for))}",
        ]
    )


def _records(trace: Waiting) -> tuple[str, str]:
    damaged = ", some lost" if trace.damaged else ""
    if trace.spans is None:
        return f"spilled, {counted(trace.journal_rows, 'row')}{damaged}", "spilled"
    return f"{trace.spans}{damaged}", f"{trace.log_records}"

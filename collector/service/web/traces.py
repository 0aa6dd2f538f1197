"""The page of open traces, for a person at 3 a.m.: numbers of the collector and what waits come in,
HTML or JSON goes out.

It names tenants and ids, and nothing of what telemetry says. Numbers are read at once; what single
traces wait for is answered by the pipeline, which may be too busy: then the numbers stand alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from pathgauge.collector.core.traces.explain import Waiting

MAX_TRACES = 200
TIMEOUT_S = 3.0

TOO_BUSY = (
    f"The pipeline did not say within {TIMEOUT_S:g} s what single traces wait for: it is busy,"
    " waits for the store, or has ended. The numbers are of now."
)

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "vary": "accept",
    "x-content-type-options": "nosniff",
}

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>pathgauge: open traces</title>
<style>
body {{ font-family: sans-serif; margin: 1em }}
table {{ border-collapse: collapse }}
td, th {{ border: 1px solid #bbb; padding: .2em .6em; text-align: left; vertical-align: top }}
.number {{ text-align: right }}
.id {{ font-family: monospace }}
</style>
<h1>Open traces</h1>
<table>
{numbers}
</table>
{traces}
</html>
"""
_HEAD = (
    "<tr><th>tenant<th>trace<th>age<th>silent<th>spans<th>log records<th>looked at in<th>waits for"
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The state of the collector, in numbers that any thread may read."""

    open_traces: int
    """Traces that wait to be read."""
    spilled_traces: int
    """Those of which only the journal holds the spans."""
    retained_traces: int
    """Traces that were read and are kept for late spans."""
    open_bytes: int
    max_open_bytes: int
    queued_bytes: int
    """Requests that wait in memory for the pipeline."""
    backlog_requests: int
    """Requests that are durable and were not taken in yet."""
    backlog_age_s: float
    """How long the oldest of them has been waiting, at most."""
    store_state: str


Ask = Callable[[int], "Future[list[Waiting]]"]
"""Has the pipeline say what the oldest open traces wait for, so many at most."""


def traces_page(
    numbers: Callable[[], Numbers], ask: Ask, timeout: float = TIMEOUT_S
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint; `timeout` in seconds is how long it waits for the pipeline."""

    async def page(request: Request) -> Response:
        try:
            traces = await asyncio.wait_for(asyncio.wrap_future(ask(MAX_TRACES)), timeout)
        except TimeoutError:
            traces = None
        status, render = (
            200 if traces is not None else 504,
            _json if _wants_json(request) else _html,
        )
        return render(numbers(), traces, status)

    return page


def _wants_json(request: Request) -> bool:
    wanted = request.query_params.get("format")
    return wanted == "json" if wanted else "application/json" in request.headers.get("accept", "")


def _json(numbers: Numbers, traces: Sequence[Waiting] | None, status: int) -> Response:
    body: dict[str, Any] = asdict(numbers)
    if traces is None:
        body["problem"] = TOO_BUSY
    else:
        body["traces"] = [asdict(trace) for trace in traces]
    return JSONResponse(body, status, HEADERS)


def _html(numbers: Numbers, traces: Sequence[Waiting] | None, status: int) -> Response:
    lines = [f'<tr><th>{name}<td class="number">{escape(value)}' for name, value in _shown(numbers)]
    page = _PAGE.format(
        numbers="\n".join(lines),
        traces=f"<p>{TOO_BUSY}" if traces is None else _table(numbers, traces),
    )
    return HTMLResponse(page, status, HEADERS)


def _shown(numbers: Numbers) -> Iterator[tuple[str, str]]:
    yield "open", f"{numbers.open_traces:,}"
    yield "of these spilled to the journal", f"{numbers.spilled_traces:,}"
    yield "read, kept for late spans", f"{numbers.retained_traces:,}"
    yield "bytes of open traces", f"{numbers.open_bytes:,} of {numbers.max_open_bytes:,}"
    yield "bytes of requests in the queue", f"{numbers.queued_bytes:,}"
    yield "backlog: durable requests not taken in", f"{numbers.backlog_requests:,}"
    yield "the oldest of them waits, at most", f"{numbers.backlog_age_s:.1f} s"
    yield "store", numbers.store_state


def _table(numbers: Numbers, traces: Sequence[Waiting]) -> str:
    if not traces:
        return "<p>No trace is open."
    more = (
        f"<p>The {len(traces)} oldest of {numbers.open_traces:,}."
        if len(traces) < numbers.open_traces
        else ""
    )
    return "\n".join([more, "<table>", _HEAD, *map(_row, traces), "</table>"])


def _row(trace: Waiting) -> str:
    next_look = "now" if trace.looked_at_in <= 0 else f"{trace.looked_at_in:.1f} s"
    cells = [
        f"<td>{escape(trace.tenant)}",
        f'<td class="id">{escape(trace.trace_id)}{" (read before)" if trace.read_before else ""}',
        *(
            f'<td class="number">{text}'
            for text in (
                f"{trace.age:.1f} s",
                f"{trace.silence:.1f} s",
                *_records(trace),
                next_look,
            )
        ),
        f"<td>{'<br>'.join(map(escape, trace.waits_for))}",
    ]
    return "<tr>" + "".join(cells)


def _records(trace: Waiting) -> tuple[str, str]:
    damaged = ", some lost" if trace.damaged else ""
    if trace.spans is None:
        return f"spilled, {trace.journal_rows} rows{damaged}", "spilled"
    return f"{trace.spans}{damaged}", f"{trace.log_records}"

"""The page `/debug/scenarios`: scenario ids in the traffic that have no reference, as HTML or JSON.

A misspelt id is the usual reason for a scenario without scores, so the page also shows the known
ids that are most like it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from html import escape

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from pathgauge.collector.service.web.debug_page import HEADERS, html_page, wants_json
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.scorers.matching.wording import plural

_ELSEWHERE = (
    "This process is not the gauge, and only the gauge knows these ids: ask the process of the role"
    " gauge whose /activez answers 200.\n"
)
_HEAD = "<tr><th>tenant<th>scenario id<th>invocations<th>known ids most like it"

Snapshot = Callable[[], tuple[Sequence[UnknownScenario], int]]
"""The ids, and how many invocations have further ids."""


def scenarios_page(
    snapshot: Snapshot, is_known: Callable[[], bool] = lambda: True
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint. `is_known`: whether this process knows the ids of the cluster."""

    async def page(request: Request) -> Response:
        if not is_known():
            return PlainTextResponse(_ELSEWHERE, 503, HEADERS)
        found, further = snapshot()
        if wants_json(request):
            body = {"unknown": [asdict(one) for one in found], "further_invocations": further}
            return JSONResponse(body, headers=HEADERS)
        return html_page("Scenarios without a reference", _html(found, further))

    return page


def _html(found: Sequence[UnknownScenario], further: int) -> str:
    if not found:
        return "<p>Every scenario id that arrived has a reference."
    more = f"<p>{further:,} {plural(further, 'invocation')} with further ids." if further else ""
    return "\n".join(["<table>", _HEAD, *map(_row, found), "</table>", more])


def _row(one: UnknownScenario) -> str:
    closest = "<br>".join(map(escape, one.closest))
    return (
        f'<tr><td>{escape(one.tenant)}<td class="id">{escape(one.scenario)}'
        f'<td class="number">{one.invocations:,}<td class="id">{closest}'
    )

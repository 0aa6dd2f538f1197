"""The HTTP pages for Prometheus, for probes and for operators.

`/metrics` is the exposition, `/healthz` reports that the process answers and is whole, `/readyz`
whether it can do its work, `/activez` whether it does: a standby does not. `/debug/traces` lists
open traces, and `/debug/scenarios` scenario ids without a reference. With `token_file` set, the
three probes stay open; the others take the token from a header, or from the cookie of somebody who
signed in on the pages for people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pathgauge.collector.api import problems
from pathgauge.collector.api.authorization import check_host, token_of
from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.receivers.auth.tokens import TokenFile
from pathgauge.collector.service.web.debug_page import HEADERS
from pathgauge.collector.service.web.exposition import exposition

Page = Callable[[Request], Awaitable[Response]]

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/activez"})
"""Paths of probes, which often cannot send a token."""


def create_app(
    registry: Collector,
    unready: Callable[[], list[str]] = list,
    readers: TokenFile | None = None,
    *,
    hosts: frozenset[str] | None = None,
    unhealthy: Callable[[], list[str]] = list,
    inactive: Callable[[], list[str]] = list,
    traces: Page | None = None,
    scenarios: Page | None = None,
    with_own_authorization: Sequence[Route] = (),
) -> ASGIApp:
    """The application over `registry`. `readers` are the tokens that open it; `None` is open to
    all. Then pages below `/debug` are open by the names `hosts` only, if it is not `None`;
    Prometheus may scrape by any name.

    `unready` returns the reasons for which the collector accepts no spans, `[]` when it is ready,
    and `unhealthy` those for which only another process will.
    `inactive` returns those for which it is a standby.
    `traces` is the page of open traces, `scenarios` that of scenario ids without a reference. The
    routes `with_own_authorization` decide themselves whom they answer.
    """
    # One exposition at a time: two at once would share the interpreter, and what is written is kept
    # for the next one. It has its own thread, so that a scrape never waits for other work in the
    # pool of the loop.
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")

    async def metrics(request: Request) -> Response:
        return await asyncio.get_running_loop().run_in_executor(
            thread, exposition, registry, request.headers
        )

    async def healthz(_: Request) -> Response:
        return _probe(unhealthy(), ["ok"])

    async def readyz(_: Request) -> Response:
        return _probe(unready(), inactive() or ["ready"])

    async def activez(_: Request) -> Response:
        return _probe(unready() + inactive(), ["active"])

    by_known_host = partial(_by_known_host, hosts=hosts if readers is None else None)
    pages = Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/activez", activez),
            *([Route("/debug/traces", by_known_host(traces))] if traces else []),
            *([Route("/debug/scenarios", by_known_host(scenarios))] if scenarios else []),
            *with_own_authorization,
        ],
        exception_handlers={HTTPException: _without_route},
    )
    return pages if readers is None else _for_readers(pages, readers, with_own_authorization)


def _by_known_host(page: Page, hosts: frozenset[str] | None) -> Page:
    """The page shows ids of telemetry, and no web site may read them by a name of its own."""

    async def checked(request: Request) -> Response:
        try:
            check_host(request.scope, hosts)
        except problems.ProblemError as problem:
            return PlainTextResponse(f"{problem.detail}\n", problem.status, HEADERS)
        return await page(request)

    return checked


def _for_readers(pages: ASGIApp, readers: TokenFile, others: Sequence[Route]) -> ASGIApp:
    """Ask for a token on all pages except the probes and `others`. An endpoint that the API does
    not have is not found, whatever the token: that of a tenant is valid there.
    """

    def is_open(scope: Scope) -> bool:
        return (
            scope["path"] in OPEN_PATHS
            or scope["path"].startswith(f"{PREFIX}/")
            or any(route.matches(scope)[0] is not Match.NONE for route in others)
        )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        answer = pages
        if scope["type"] == "http" and not is_open(scope):
            token = token_of(scope)
            if token is None or not readers.holds(token):
                answer = PlainTextResponse(
                    "expected Authorization: Bearer <token>\n", 401, {"WWW-Authenticate": "Bearer"}
                )
        await answer(scope, receive, send)

    return app


async def _without_route(request: Request, error: Exception) -> Response:
    """The answer to an unknown address or method. Clients of the API get a problem, as always."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if not request.url.path.startswith(f"{PREFIX}/"):
        return PlainTextResponse(error.detail, error.status_code, headers)
    detail = f"found no such endpoint, expected one of {PREFIX}/openapi.json"
    if allowed := headers.get("Allow"):
        headers["Allow"] = methods = ", ".join(sorted(allowed.split(", ")))
        detail = f"found {request.method}, expected {methods}"
    return problems.response(problems.ProblemError(error.status_code, detail, headers))


def _probe(reasons: list[str], otherwise: list[str]) -> Response:
    return PlainTextResponse(
        "\n".join(reasons or otherwise) + "\n", status_code=503 if reasons else 200
    )

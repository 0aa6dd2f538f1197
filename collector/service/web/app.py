"""The HTTP pages for Prometheus, for probes and for operators.

`/metrics` is the exposition, `/healthz` reports that the process answers, `/readyz` whether it
accepts spans, `/debug/traces` lists open traces, `/debug/scenarios` scenario ids without a
reference, and `/` links to them. With `token_file` set, the
two probes stay open.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pathgauge.collector.receivers.auth.tokens import TokenFile, bearer

Page = Callable[[Request], Awaitable[Response]]

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths of probes, which often cannot send a token."""

GZIP_LEVEL = 6
"""Compared with the highest level: a quarter of the time, a tenth more bytes."""

INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>pathgauge</title>
<h1>pathgauge</h1>
<ul>
<li><a href="metrics">metrics</a>: scores of agent invocations, for Prometheus
<li><a href="healthz">healthz</a>: whether the collector is alive
<li><a href="readyz">readyz</a>: whether the collector accepts spans
<li><a href="debug/traces">debug/traces</a>: which traces are open, and what they wait for
<li><a href="debug/scenarios">debug/scenarios</a>: which scenario ids have no reference
</ul>
</html>
"""


def create_app(
    registry: CollectorRegistry,
    unready: Callable[[], list[str]] = list,
    readers: TokenFile | None = None,
    traces: Page | None = None,
    scenarios: Page | None = None,
) -> ASGIApp:
    """The application over `registry`. `readers` are the tokens that open it; `None` is open to
    all.

    `unready` returns the reasons for which the collector accepts no spans, `[]` when it is ready.
    `traces` is the page of open traces, `scenarios` that of scenario ids without a reference.
    """
    # One exposition at a time: two at once would share the interpreter and double the memory. It
    # has its own thread, so that a scrape never waits for other work in the pool of the loop.
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")

    async def metrics(request: Request) -> Response:
        return await asyncio.get_running_loop().run_in_executor(
            thread, _exposition, registry, request
        )

    async def readyz(_: Request) -> Response:
        reasons = unready()
        return PlainTextResponse(
            "\n".join(reasons or ["ready"]) + "\n", status_code=503 if reasons else 200
        )

    pages = Starlette(
        routes=[
            Route("/", _index),
            Route("/metrics", metrics),
            Route("/healthz", _healthz),
            Route("/readyz", readyz),
            *([Route("/debug/traces", traces)] if traces else []),
            *([Route("/debug/scenarios", scenarios)] if scenarios else []),
        ]
    )
    return pages if readers is None else _for_readers(pages, readers)


def _for_readers(pages: ASGIApp, readers: TokenFile) -> ASGIApp:
    """Ask for a token on all pages except the probes."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        answer = pages
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            token = bearer(Headers(scope=scope).getlist("authorization"))
            if token is None or not readers.holds(token):
                answer = PlainTextResponse(
                    "expected Authorization: Bearer <token>\n", 401, {"WWW-Authenticate": "Bearer"}
                )
        await answer(scope, receive, send)

    return app


async def _index(_: Request) -> Response:
    return HTMLResponse(INDEX)


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _exposition(registry: CollectorRegistry, request: Request) -> Response:
    """The metrics in the format and encoding that the scraper asked for."""
    try:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
    except TypeError:  # the version in the header is not a number
        encode, content_type = choose_encoder("")
    headers = {"content-type": content_type, "vary": "accept, accept-encoding"}
    body = encode(registry)
    if gzip_accepted(request.headers.get("accept-encoding", "")):
        headers["content-encoding"] = "gzip"
        body = gzip.compress(body, compresslevel=GZIP_LEVEL)
    return Response(body, headers=headers)

"""The HTTP application for Prometheus and for probes: a metrics registry and a readiness check come in, an ASGI application goes out.

`/metrics` is the exposition, `/healthz` says that the process answers, `/readyz` whether it takes spans, and `/` links to them.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

GZIP_LEVEL = 6
"""A quarter of the time that the highest level takes, for a tenth more bytes."""

INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>pathgauge</title>
<h1>pathgauge</h1>
<ul>
<li><a href="metrics">metrics</a>: scores of agent invocations, for Prometheus
<li><a href="healthz">healthz</a>: whether the collector is alive
<li><a href="readyz">readyz</a>: whether the collector takes spans
</ul>
</html>
"""


def create_app(registry: CollectorRegistry, unready: Callable[[], list[str]] = list) -> Starlette:
    """The application over `registry`. `unready` gives the reasons, a line each, for which the collector takes no spans; none is ready."""
    # One exposition at a time, as a second one would share the interpreter with the first and double the memory; and in a thread of
    # its own, so that no other work in the loop's pool makes a scrape wait.
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")

    async def metrics(request: Request) -> Response:
        return await asyncio.get_running_loop().run_in_executor(thread, _exposition, registry, request)

    async def readyz(_: Request) -> Response:
        reasons = unready()
        return PlainTextResponse("\n".join(reasons or ["ready"]) + "\n", status_code=503 if reasons else 200)

    return Starlette(
        routes=[
            Route("/", _index),
            Route("/metrics", metrics),
            Route("/healthz", _healthz),
            Route("/readyz", readyz),
        ]
    )


async def _index(_: Request) -> Response:
    return HTMLResponse(INDEX)


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _exposition(registry: CollectorRegistry, request: Request) -> Response:
    """The text in the format and encoding that the scraper asked for."""
    try:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
    except TypeError:  # a version that is no number
        encode, content_type = choose_encoder("")
    headers = {"content-type": content_type, "vary": "accept, accept-encoding"}
    body = encode(registry)
    if gzip_accepted(request.headers.get("accept-encoding", "")):
        headers["content-encoding"] = "gzip"
        body = gzip.compress(body, compresslevel=GZIP_LEVEL)
    return Response(body, headers=headers)

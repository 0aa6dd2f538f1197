"""Serves the MCP server over streamable HTTP, for several users.

Each request brings the token of its user, which the collector checks; none is kept. Requests are
independent of each other: there are no sessions that a stranger could take over. Requests of
browsers from other sites, and for other host names, are refused (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pathgauge.collector.api.mcp.collector import Collector, CollectorError
from pathgauge.collector.api.mcp.server import server
from pathgauge.collector.core.documents.quantities import Endpoint
from pathgauge.collector.receivers.auth.tokens import bearer
from pathgauge.collector.receivers.server.asgi_server import HttpServer

PATH = "/mcp"
MAX_REQUEST_BYTES = 64 << 10
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_GRACE_S = 1.0


async def serve(
    collector: Collector,
    endpoint: Endpoint,
    hosts: Iterable[str],
    on_ready: Callable[[str], object],
) -> None:
    """Serve until SIGINT or SIGTERM. `hosts` are host names by which clients reach the server,
    besides those of loopback and of the endpoint. `on_ready` is called with the URL. Raises OSError
    if the address is not available.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    served = server(collector, _token_of_request)
    app = served.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=_security((*_LOOPBACK, _host(endpoint), *hosts)),
    )
    http = HttpServer(_with_token_check(app, collector), str(endpoint))
    async with served.session_manager.run():
        await http.start()
        try:
            on_ready(f"http://{_host(endpoint)}:{http.port}{PATH}")
            await stopped.wait()
        finally:
            await http.stop(_GRACE_S)


def _host(endpoint: Endpoint) -> str:
    return str(endpoint).rpartition(":")[0]


def _security(hosts: Iterable[str]) -> TransportSecuritySettings:
    names = [form for host in hosts for form in (host, f"{host}:*")]
    origins = [f"{scheme}://{one}" for one in names for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins)


def _token_of_request(context: Context[Any, Any]) -> str | None:
    request = context.request_context.request
    return None if request is None else bearer(request.headers.getlist("authorization"))


def _with_token_check(app: ASGIApp, collector: Collector) -> ASGIApp:
    """Answer 401 to requests whose token the collector does not accept, and 405 to others than
    POST.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = app
        if scope["type"] == "http":
            token = bearer(Headers(scope=scope).getlist("authorization"))
            try:
                await asyncio.to_thread(collector.check, token)
            except CollectorError as error:
                answer = _refusal(error)
            if answer is app and scope["method"] != "POST":
                # GET opens a stream for messages of the server. There are none without sessions.
                answer = PlainTextResponse("expected POST\n", 405, {"Allow": "POST"})
        await answer(scope, receive, send)

    return checked


def _refusal(error: CollectorError) -> ASGIApp:
    if error.status == 401:
        return PlainTextResponse(f"{error}\n", 401, {"WWW-Authenticate": "Bearer"})
    return PlainTextResponse(f"{error}\n", 503, {"Retry-After": "5"})

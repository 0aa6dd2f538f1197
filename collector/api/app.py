"""The routes of the API."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pathgauge.collector.api.authorization import Authorization, authorized
from pathgauge.collector.api.endpoints import ENDPOINTS, PREFIX, Endpoint
from pathgauge.collector.api.events import Events
from pathgauge.collector.api.feedback import FeedbackIntake
from pathgauge.collector.api.openapi import document
from pathgauge.collector.api.posting import PATH as FEEDBACK, Posting
from pathgauge.collector.api.problems import NOT_A_GAUGE, STANDBY, ProblemError, answered, response
from pathgauge.collector.api.queries import read
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.sources import Sources

_HEADERS = {
    "cache-control": "private, no-cache",
    "vary": "authorization, cookie",
    "x-content-type-options": "nosniff",
}

Handler = Callable[[Request], Awaitable[Response]]


def routes(
    sources: Sources,
    authorization: Authorization,
    thread: QueryThread,
    intake: FeedbackIntake | None = None,
) -> list[Route]:
    """One route for each endpoint, that of the events, that of posted feedback, and that of the
    OpenAPI document. Without `intake`, no feedback is taken.
    """
    posting = {FEEDBACK: Posting(intake, authorization, thread).answer}
    return [
        Route(f"{PREFIX}/openapi.json", _openapi),
        Route(f"{PREFIX}/events", Events(sources, authorization, thread).answer),
        *(
            _route(one.path, _handler(one, sources, authorization, thread), posting.get(one.path))
            for one in ENDPOINTS
        ),
    ]


def _route(path: str, get: Handler, post: Handler | None) -> Route:
    """One route for all methods of a path: of several, the header `Allow` would list only some."""

    async def handle(request: Request) -> Response:
        if post is not None and request.method == "POST":
            return await post(request)
        return await get(request)

    methods = ["GET"] if post is None else ["GET", "POST"]
    return Route(PREFIX + path, handle, methods=methods)


def routes_elsewhere() -> list[Route]:
    """The API of a process that does not have it: it says which process does."""
    return [Route(PREFIX + "/{path:path}", _elsewhere, methods=["GET", "POST"])]


async def _elsewhere(_: Request) -> Response:
    return response(ProblemError(404, NOT_A_GAUGE))


async def _openapi(request: Request) -> Response:
    return _json(request, document())


def _handler(
    endpoint: Endpoint, sources: Sources, authorization: Authorization, thread: QueryThread
) -> Handler:
    async def answer(request: Request) -> Response:
        tenant = authorized(authorization, request)
        query = read(endpoint.query, request, tenant)

        def encoded() -> bytes:
            if endpoint.of_gauge and sources.is_standby():
                raise ProblemError(503, STANDBY)
            found = endpoint.answer(sources, tenant, query, request.path_params)
            return found.model_dump_json().encode()

        return _json(request, await thread.run(encoded))

    async def handle(request: Request) -> Response:
        return await answered(answer(request))

    return handle


def _json(request: Request, body: bytes) -> Response:
    """The answer, or 304 if the client has it already."""
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {**_HEADERS, "etag": tag}
    known = request.headers.get("if-none-match", "")
    if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")

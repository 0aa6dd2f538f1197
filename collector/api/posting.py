"""`POST /feedback`: the only request that changes anything.

Only `application/json` is taken: a form of another site cannot send it, and scripts of other sites
may not. The answer is sent when the feedback is durable.
"""

from __future__ import annotations

import uuid

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from pathgauge.collector.api.authorization import Authorization, authorized
from pathgauge.collector.api.feedback import FeedbackIntake
from pathgauge.collector.api.feedback_models import Given, Recorded
from pathgauge.collector.api.problems import (
    EXPECTED,
    OTHER_TENANT,
    ProblemError,
    answered,
    checked,
    problem_of,
)
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.core.otlp.json_types import json_type

PATH = "/feedback"
MAX_BODY_BYTES = 32 * 1024
NOT_TAKEN = "feedback: false, or a collector that keeps no results: no feedback is taken"
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class Posting:
    """The endpoint."""

    def __init__(
        self, intake: FeedbackIntake | None, authorization: Authorization, thread: QueryThread
    ) -> None:
        """`intake` is `None` if no feedback is taken."""
        self._intake = intake
        self._authorization = authorization
        self._thread = thread

    async def answer(self, request: Request) -> Response:
        """Take one answer."""
        return await answered(self._counted(request))

    async def _counted(self, request: Request) -> Response:
        if self._intake is None:
            raise ProblemError(409, NOT_TAKEN)
        try:
            response = await self._take(self._intake, request)
        except EXPECTED as error:
            self._intake.count("api", str(problem_of(error).status))
            raise
        self._intake.count("api", str(response.status_code))
        return response

    async def _take(self, intake: FeedbackIntake, request: Request) -> Response:
        tenant = authorized(self._authorization, request)
        given = checked(Given, await _json_body(request))
        if tenant is not None and given.tenant not in (None, tenant):
            raise ProblemError(403, OTHER_TENANT)
        owner = (given.tenant or "") if tenant is None else tenant
        answer = given.answer(owner, "api", uuid.uuid4().hex)
        outcome = await self._thread.run(lambda: intake.take(answer))
        body = Recorded.model_validate({"outcome": outcome}).model_dump_json()
        status = 201 if outcome == "created" else 200
        return Response(body, status, _HEADERS, "application/json")


async def _json_body(request: Request) -> dict[str, object]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        named = repr(media_type[:100]) if media_type else "no value"
        raise ProblemError(415, f"content-type: found {named}, expected application/json")
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise ProblemError(413, f"expected a body of at most {MAX_BODY_BYTES} bytes")
    except ClientDisconnect:
        raise ProblemError(400, "the body ended early") from None
    try:
        found: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProblemError(422, f"expected JSON: {error}") from None
    if not isinstance(found, dict):
        raise ProblemError(422, f"found {json_type(found)}, expected an object")
    return found

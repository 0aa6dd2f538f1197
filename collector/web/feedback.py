"""The buttons by which a person says whether a run was good.

As at the sign-in, the origin of the form is checked, so another site cannot answer for anybody. The
browser keeps a random name in a cookie: with it, a second click revises the first.
"""

from __future__ import annotations

import secrets

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pathgauge.collector.api.authorization import Authorization, UnauthorizedError
from pathgauge.collector.api.feedback import FeedbackIntake
from pathgauge.collector.api.feedback_models import Given
from pathgauge.collector.api.problems import EXPECTED, ProblemError, checked, problem_of
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.web import answers, links
from pathgauge.collector.web.forms import fields_of, has_own_origin, uses_https
from pathgauge.collector.web.result import stored_result

RATER_COOKIE = "pathgauge_rater"
MAX_AGE_S = 365 * 86_400
_RATER_BYTES = 16
_MAX_RATER_CHARS = 64


def routes(
    sources: Sources, authorization: Authorization, thread: QueryThread, intake: FeedbackIntake
) -> list[Route]:
    """The address that the form of a result is sent to."""

    async def handle(request: Request) -> Response:
        try:
            response = await _take(request, sources, authorization, thread, intake)
        except UnauthorizedError:
            error = ProblemError(401, "Sign in again.")
        except EXPECTED as found:
            error = problem_of(found)
        else:
            intake.count("ui", str(response.status_code))
            return response
        intake.count("ui", str(error.status))
        return answers.problem(error.status, error.detail, error.headers)

    return [Route("/results/{trace_id}/{span_id}/feedback", handle, methods=["POST"])]


async def _take(
    request: Request,
    sources: Sources,
    authorization: Authorization,
    thread: QueryThread,
    intake: FeedbackIntake,
) -> Response:
    tenant = authorization.tenant(request.scope)
    if not has_own_origin(request):
        raise ProblemError(403, "This form was sent from another site.")
    fields = await fields_of(request)
    if fields is None:
        raise ProblemError(413, "The form is too long.")
    rater = request.cookies.get(RATER_COOKIE, "")[:_MAX_RATER_CHARS]
    rater = rater or secrets.token_urlsafe(_RATER_BYTES)
    wanted = request.query_params.get("tenant") if tenant is None else tenant
    given = checked(
        Given,
        {
            "trace_id": request.path_params["trace_id"],
            "span_id": request.path_params["span_id"],
            "thumb": fields.get("thumb"),
            "comment": fields.get("comment") or None,
            "rater": rater,
        },
    )

    def take() -> str:
        stored, _ = stored_result(sources, wanted, request.path_params)
        intake.take(given.answer(stored.tenant, "ui", secrets.token_hex(_RATER_BYTES)))
        return links.result(stored.trace_id, stored.span_id, stored.tenant)

    response = answers.redirect(f"{await thread.run(take)}#people")
    response.set_cookie(
        RATER_COOKIE,
        rater,
        max_age=MAX_AGE_S,
        path="/",
        secure=uses_https(request),
        httponly=True,
        samesite="strict",
    )
    return response

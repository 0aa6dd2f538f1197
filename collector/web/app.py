"""The routes of the pages. Queries and templates run in the thread of the queries."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pathgauge.collector.api import problems
from pathgauge.collector.api.authorization import Authorization, UnauthorizedError
from pathgauge.collector.api.feedback import FeedbackIntake
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.web import answers, feedback, sign_in, static_files
from pathgauge.collector.web.overview import overview
from pathgauge.collector.web.recorded import reference_file
from pathgauge.collector.web.reference_list import reference_list
from pathgauge.collector.web.rendering import render
from pathgauge.collector.web.result import of_trace, result
from pathgauge.collector.web.result_list import result_list
from pathgauge.collector.web.scenario import scenario
from pathgauge.collector.web.visit import Page, View, Visit


def proposal(visit: Visit) -> Page:
    """A reference that is proposed for a scenario."""
    # ROUGE comes with it, which takes 30 MB: a collector that proposes nothing does without.
    from pathgauge.collector.web import proposal as page  # noqa: PLC0415

    return page.proposal(visit)


def proposal_file(visit: Visit) -> Response:
    """The same as YAML."""
    from pathgauge.collector.web import proposal as page  # noqa: PLC0415

    return page.proposal_file(visit)


VIEWS: Mapping[str, View] = {
    "/": overview,
    "/scenario": scenario,
    "/results": result_list,
    "/results/{trace_id}": of_trace,
    "/results/{trace_id}/{span_id}": result,
    "/results/{trace_id}/{span_id}/reference.yaml": reference_file,
    "/references": reference_list,
    "/references/proposal": proposal,
    "/references/proposal/{file}": proposal_file,
}

SEARCH_S = 1.0
"""How long a page goes on with a search that has found nothing. The parts of the search are queries
of their own, so that others have their turn between them.
"""

Handler = Callable[[Request], Awaitable[Response]]


def routes(
    sources: Sources,
    authorization: Authorization,
    thread: QueryThread,
    trace_url: str | None = None,
    dashboard_url: str | None = None,
    *,
    intake: FeedbackIntake | None = None,
) -> list[Route]:
    """All pages. `trace_url` is the page of a trace in its backend, `dashboard_url` the dashboard
    of an agent in a scenario. Without `intake`, no feedback is taken.
    """

    def handler(view: View) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                tenant = authorization.tenant(request.scope)
            except UnauthorizedError:
                return _without_token(request)
            except ProblemError as error:
                return answers.problem(error.status, error.detail)
            visit = Visit(
                sources,
                tenant,
                {name: value for name, value in request.query_params.items() if value},
                request.path_params,
                time.time(),
                trace_url,
                dashboard_url,
                answerable=intake.tenants if intake is not None else (),
                search_until=0.0 if _is_live(request) else time.monotonic() + SEARCH_S,
                has_tenants=authorization.tenant_of is not None,
            )
            has_sign_out = not authorization.is_open
            try:
                found: Response | Visit = visit
                while isinstance(found, Visit):
                    found = await thread.run(partial(_answer, request, view, found, has_sign_out))
                return found
            except ProblemError as error:  # too many wait for the thread
                return answers.problem(error.status, error.detail, error.headers)

        return handle

    return [
        *(Route(path, handler(view)) for path, view in VIEWS.items()),
        *sign_in.routes(authorization),
        *(feedback.routes(sources, authorization, thread, intake) if intake else []),
        static_files.route(),
    ]


def _is_live(request: Request) -> bool:
    """Whether a page that is shown already asks what is new."""
    return "hx-request" in request.headers


def _answer(request: Request, view: View, visit: Visit, has_sign_out: bool) -> Response | Visit:
    try:
        found = view(visit)
        if isinstance(found, Response | Visit):
            return found
        return _page(request, found, visit, has_sign_out)
    except problems.EXPECTED as error:
        problem = problems.problem_of(error)
        return answers.problem(problem.status, problem.detail, problem.headers)


def _page(request: Request, page: Page, visit: Visit, has_sign_out: bool) -> Response:
    body = render(
        page.template,
        **page.values,
        now=visit.now,
        tenant=visit.tenant,
        listed=visit.listed,
        has_sign_out=has_sign_out,
        is_standby=visit.sources.is_standby(),
    )
    return answers.html(answers.compressed(request, body), page.status)


def _without_token(request: Request) -> Response:
    """To the sign-in, which leads back. A live update is only told that it may not read."""
    if _is_live(request):
        return answers.problem(401, "Sign in again.")
    address = request.url.path
    if request.url.query:
        address += f"?{request.url.query}"
    if request.headers.get("sec-fetch-site") == "cross-site":
        # With a link of another site, such as that of an alert, browsers leave out a strict cookie.
        # A page of our own that asks again sends it.
        return answers.html(render("again.html", address=sign_in.inside(address)))
    return answers.redirect(f"{sign_in.PATH}?{urlencode({'next': address})}")

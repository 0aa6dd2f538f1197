"""Sign-in: somebody pastes a token once, and the browser keeps it in a cookie.

The cookie is `SameSite=Strict`, so other sites cannot use it. The origin of forms is checked too:
otherwise another site could sign somebody in with a token of its own.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pathgauge.collector.api.authorization import COOKIE, Authorization, UnauthorizedError
from pathgauge.collector.web import answers
from pathgauge.collector.web.forms import fields_of, has_own_origin, uses_https
from pathgauge.collector.web.rendering import render

PATH = "/sign-in"
MAX_AGE_S = 30 * 86_400
_HOME = "/"


def routes(authorization: Authorization) -> list[Route]:
    """The pages that work without a token."""

    async def form(request: Request) -> Response:
        if authorization.is_open:
            return answers.redirect(_HOME)
        return _form(inside(request.query_params.get("next", "")), "")

    async def sign_in(request: Request) -> Response:
        if not has_own_origin(request):
            return answers.problem(403, "This form was sent from another site.")
        fields = await fields_of(request)
        if fields is None:
            return answers.problem(413, "The token is too long.")
        address = inside(fields.get("next", ""))
        token = fields.get("token", "").strip()
        try:
            authorization.of_token(token)
        except UnauthorizedError:
            return _form(address, "This token is not known here.", 401)
        response = answers.redirect(address)
        _set_cookie(request, response, token, MAX_AGE_S)
        return response

    async def sign_out(request: Request) -> Response:
        if not has_own_origin(request):
            return answers.problem(403, "This form was sent from another site.")
        response = answers.redirect(_HOME if authorization.is_open else PATH)
        _set_cookie(request, response, "", 0)
        return response

    return [
        Route(PATH, form),
        Route(PATH, sign_in, methods=["POST"]),
        Route("/sign-out", sign_out, methods=["POST"]),
    ]


def _form(address: str, message: str, status: int = 200) -> Response:
    body = render("sign_in.html", next=address, message=message, has_sign_out=False, tenant=None)
    return answers.html(body, status)


def _set_cookie(request: Request, response: Response, token: str, max_age: int) -> None:
    response.set_cookie(
        COOKIE,
        token,
        max_age=max_age,
        path="/",
        secure=uses_https(request),
        httponly=True,
        samesite="strict",
    )


def inside(address: str) -> str:
    """The address if it is one of this server, else the first page. `//host` and `/\\host` lead to
    other servers.
    """
    if not address.startswith("/") or address[1:2] in ("/", "\\") or not address.isprintable():
        return _HOME
    return address

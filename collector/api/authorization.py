"""Decides whose data a request may read.

A reader's token opens everything, as it opens /metrics. A tenant's token opens the data of that
tenant. Without any configured token, everything is open to everybody who reaches the port. Then the
host name of a request counts: otherwise any web site could let its own name lead to loopback, and
read everything with the browser of somebody on this machine (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.types import Scope

from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.receivers.auth.tenants import Credentials, RefusedError
from pathgauge.collector.receivers.auth.tokens import TokenFile, bearer

COOKIE = "pathgauge_token"
"""The cookie in which a browser keeps the token that somebody has pasted once."""


LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""The names by which a browser reaches its own machine."""


class UnauthorizedError(Exception):
    """The request has no token, or an unknown one."""


@dataclass(frozen=True, slots=True)
class Authorization:
    """The tokens that open the API and the pages."""

    readers: TokenFile | None
    tenant_of: Callable[[Credentials], str] | None
    """Finds the tenant of a token; raises `RefusedError`. `None`: no tenants are configured."""
    hosts: frozenset[str] | None = None
    """The host names in requests without a token, if everything is open; `None`: any."""

    @property
    def is_open(self) -> bool:
        """Whether everybody may read everything."""
        return self.readers is None and self.tenant_of is None

    def tenant(self, scope: Scope) -> str | None:
        """The tenant whose data the request may read; `None`: all data. Raises
        `UnauthorizedError`, and `ProblemError` for a host name that is not known.
        """
        if not self.is_open:
            return self.of_token(token_of(scope))
        check_host(scope, self.hosts)
        return None

    def of_token(self, token: str | None) -> str | None:
        """The same for a token."""
        if token is not None and self.readers is not None and self.readers.holds(token):
            return None
        if token is not None and self.tenant_of is not None:
            try:
                return self.tenant_of(Credentials((f"Bearer {token}",)))
            except RefusedError:
                pass
        raise UnauthorizedError


def check_host(scope: Scope, hosts: frozenset[str] | None) -> None:
    """Raises `ProblemError` if the request asks for a host that is not one of `hosts`; `None`: any
    is.
    """
    host = _host(scope)
    if hosts is not None and host not in hosts:
        raise ProblemError(
            403, f"found the host {host[:100]}, expected one of loopback or of ui.hosts"
        )


def authorized(authorization: Authorization, request: Request) -> str | None:
    """The tenant whose data the request may read; `None`: all. Raises `ProblemError`."""
    try:
        return authorization.tenant(request.scope)
    except UnauthorizedError:
        raise ProblemError(
            401, "expected Authorization: Bearer <token>", {"www-authenticate": "Bearer"}
        ) from None


def token_of(scope: Scope) -> str | None:
    """The token in the header or in the cookie of a request."""
    headers = Headers(scope=scope)
    if authorization := headers.getlist("authorization"):
        return bearer(authorization)
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def _host(scope: Scope) -> str:
    """The host name that the client has asked for, without the port."""
    name = Headers(scope=scope).get("host", "").lower()
    bare, colon, port = name.rpartition(":")
    return bare if colon and port.isdigit() else name

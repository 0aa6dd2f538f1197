"""Answers of the pages: headers that keep a browser from running or loading anything else."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from pathgauge.collector.web.rendering import render

HEADERS = {
    "cache-control": "private, no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none';"
    " base-uri 'none'",
    "cross-origin-opener-policy": "same-origin",
    # With `no-referrer`, forms would send `Origin: null`, which the sign-in refuses.
    "referrer-policy": "same-origin",
    "vary": "authorization, cookie, accept-encoding",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_GZIP_LEVEL = 4
_GZIP_FROM = 2_000
_ADDRESS_MARKS = ":/?#[]@!$&'()*+,;=%"
"""Marks that structure an address, and its escapes."""


def html(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A page."""
    return Response(
        body, status, {**HEADERS, **(headers or {}), **_encoding(body)}, "text/html; charset=utf-8"
    )


def compressed(request: Request, body: bytes) -> bytes:
    """The body as the browser takes it: compressed if it is long. For the thread of the queries."""
    accepted = request.headers.get("accept-encoding", "")
    if len(body) < _GZIP_FROM or "gzip" not in accepted:
        return body
    return gzip.compress(body, _GZIP_LEVEL)


def redirect(address: str) -> Response:
    """To another page of this server. A header can only have characters that an address escapes."""
    location = quote(address.encode("utf-8", "replace"), safe=_ADDRESS_MARKS)
    return Response(None, 303, {**HEADERS, "location": location})


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A page with what went wrong. It is small, so any thread may render it."""
    body = render("problem.html", status=status, detail=detail, has_sign_out=False, tenant=None)
    return html(body, status, headers)


def _encoding(body: bytes) -> Mapping[str, str]:
    return {"content-encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}

"""Forms that browsers send to this server: where they come from, and their fields."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from starlette.requests import ClientDisconnect, Request

MAX_BODY_BYTES = 16 * 1024


def has_own_origin(request: Request) -> bool:
    """Whether a page of this server sent the form. Browsers name the origin of every form."""
    host = request.headers.get("host", "")
    return bool(host) and _origin(request)[1] == host.lower()


def uses_https(request: Request) -> bool:
    """Whether the browser uses HTTPS, also behind a proxy that ends TLS."""
    return "https" in (request.url.scheme, _origin(request)[0])


def _origin(request: Request) -> tuple[str, str]:
    """Scheme and host of the page that sent the form. The scheme is the one that the browser used,
    also behind a proxy that ends TLS.
    """
    try:
        parts = urlsplit(request.headers.get("origin", "").lower())
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc


async def fields_of(request: Request) -> dict[str, str] | None:
    """The fields of the form; `None` if it is too long."""
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                return None
    except ClientDisconnect:
        return {}
    try:
        found = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}

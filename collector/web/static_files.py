"""Scripts, styles and the icon. They are public, since the sign-in page needs them too.

Their addresses contain a hash of all of them, so browsers may keep them for good.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
_HASH_LENGTH = 12


def address(name: str) -> str:
    """The address of a file, for instance `vendor/htmx.min.js`."""
    return f"/static/{_version()}/{name}"


def route() -> Route:
    """Serves the files."""
    return Route("/static/{version}/{name:path}", _serve)


async def _serve(request: Request) -> Response:
    found = _contents().get(request.path_params["name"])
    if found is None:
        return Response("not found\n", 404, media_type="text/plain")
    body, media_type = found
    is_current = request.path_params["version"] == _version()
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if is_current else "no-cache",
        "content-security-policy": "default-src 'none'",
        "x-content-type-options": "nosniff",
    }
    return Response(body, headers=headers, media_type=media_type)


@cache
def _contents() -> dict[str, tuple[bytes, str]]:
    return dict(_below(files("pathgauge.collector.web") / "static", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, tuple[bytes, str]]]:
    found: list[tuple[str, tuple[bytes, str]]] = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
        elif media_type := _TYPES.get(f".{name.rpartition('.')[2]}"):
            found.append((name, (entry.read_bytes(), media_type)))
    return found


@cache
def _version() -> str:
    digest = hashlib.sha256()
    for name, (body, _) in _contents().items():
        digest.update(f"{name}\0{len(body)}\0".encode())
        digest.update(body)
    return digest.hexdigest()[:_HASH_LENGTH]

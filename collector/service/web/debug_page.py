"""What the pages below `/debug` have in common: each is HTML, or JSON for programs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "vary": "accept",
    "x-content-type-options": "nosniff",
}

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>pathgauge: {title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font-family: sans-serif; margin: 1em }}
table {{ border-collapse: collapse; margin-bottom: 1em }}
td, th {{ border: 1px solid #8888; padding: .2em .6em; text-align: left; vertical-align: top }}
.number {{ text-align: right; white-space: nowrap }}
.id {{ font-family: monospace; overflow-wrap: anywhere }}
</style>
<h1>{heading}</h1>
{content}
</html>
"""


def wants_json(request: Request) -> bool:
    """Whether `?format=json`, or the header `Accept`, asks for JSON."""
    wanted = request.query_params.get("format")
    if wanted:
        return wanted == "json"
    return "application/json" in request.headers.get("accept", "")


def html_page(heading: str, content: str, status: int = 200) -> Response:
    """A page; `content` is HTML."""
    title = heading[0].lower() + heading[1:]
    return HTMLResponse(
        _PAGE.format(title=title, heading=heading, content=content), status, HEADERS
    )

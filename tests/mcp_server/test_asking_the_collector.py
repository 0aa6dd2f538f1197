"""The MCP server trusts no answer: neither its size, nor its form, nor where it leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from pathgauge.collector.api import models
from pathgauge.collector.api.mcp.collector import MAX_BYTES, Collector, CollectorError

TOKEN = "token-0123456789"
PROBLEM = b'{"title": "t", "status": 404, "detail": "%s"}' % (b"x" * 10_000)
ANSWERS: dict[str, tuple[int, str, bytes]] = {
    "/api/v1/references": (200, "application/json", b'{"references":[],"matched":1,"of":2}'),
    "/moved/api/v1/references": (307, "text/plain", b""),
    "/html/api/v1/references": (200, "text/html", b"<html>"),
    "/other/api/v1/references": (200, "application/json", b'{"matched": 1}'),
    "/problem/api/v1/references": (404, "application/problem+json; charset=utf-8", PROBLEM),
    "/no-problem/api/v1/references": (500, "application/problem+json", b"[]"),
    "/long/api/v1/references": (200, "application/json", b" " * (MAX_BYTES + 1)),
}


class _Handler(BaseHTTPRequestHandler):
    requests: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers["authorization"]))
        status, media_type, body = ANSWERS.get(
            self.path.partition("?")[0], (404, "text/plain", b"")
        )
        self.send_response(status)
        self.send_header("content-type", media_type)
        if status == 307:
            self.send_header("location", "/api/v1/references")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """The URL of a server, and the requests that it got."""
    requests: list[tuple[str, str | None]] = []
    handler = type("Handler", (_Handler,), {"requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()


def asked(url: str, token: str | None = TOKEN) -> models.References:
    return Collector(url).get(models.References, token, ("references",))


def test_an_answer_is_read_and_the_token_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving() as (url, requests):
        expected = models.References(references=[], matched=1, of=2)
        assert (asked(url), asked(f"{url}/", None)) == (expected, expected)
    assert requests == [
        ("/api/v1/references", f"Bearer {TOKEN}"),
        ("/api/v1/references", None),
    ]


def test_parts_of_the_path_and_parameters_are_escaped() -> None:
    with serving() as (url, requests), pytest.raises(CollectorError):
        Collector(url).get(
            models.References, None, ("results", "a/b?c"), {"agent": "a&b=\n", "since": None}
        )
    assert requests == [("/api/v1/results/a%2Fb%3Fc?agent=a%26b%3D%0A", None)]


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("moved", 502, "status 307 and no known content"),
        ("html", 502, "status 200 and no known content"),
        ("other", 502, "status 200 and no known content"),
        ("no-problem", 502, "status 500 and no known content"),
        ("absent", 502, "status 404 and no known content: is it a collector of this version, and"),
        ("long", 502, "the answer is longer than 8 MiB: ask for less"),
        ("problem", 404, "xxx"),
    ],
)
def test_other_answers_are_short_errors(path: str, status: int, detail: str) -> None:
    with serving() as (url, requests), pytest.raises(CollectorError) as caught:
        asked(f"{url}/{path}")
    assert len(requests) == 1
    assert (caught.value.status, detail in str(caught.value)) == (status, True), caught.value
    assert len(str(caught.value)) <= 500

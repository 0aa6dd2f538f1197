"""The pages for Prometheus and for probes, fetched over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import http.client
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry, Counter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from pathgauge.collector.api.authorization import LOOPBACK
from pathgauge.collector.receivers.auth.tokens import TokenFile
from pathgauge.collector.receivers.server.asgi_server import HttpServer
from pathgauge.collector.service.web.app import create_app
from support.running import PATIENCE_S

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Page(NamedTuple):
    status: int
    content_type: str | None
    encoding: str | None
    body: bytes


class Site:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.unready: list[str] = []
        self.inactive: list[str] = []
        self.server = HttpServer(
            create_app(
                self.registry,
                lambda: self.unready,
                inactive=lambda: self.inactive,
                traces=_traces,
                scenarios=_traces,
            ),
            "127.0.0.1:0",
        )

    async def get(self, path: str, method: str = "GET", **headers: str) -> Page:
        return await asyncio.to_thread(
            self._get,
            path,
            method,
            {name.replace("_", "-"): value for name, value in headers.items()},
        )

    def _get(self, path: str, method: str, headers: dict[str, str]) -> Page:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return Page(
                answer.status,
                answer.headers["content-type"],
                answer.headers["content-encoding"],
                answer.read(),
            )
        finally:
            connection.close()


async def _traces(_: Request) -> Response:
    return PlainTextResponse("No trace is open.")


@pytest_asyncio.fixture(name="site")
async def _site() -> AsyncIterator[Site]:
    site = Site()
    Counter("calls", "Calls.", registry=site.registry).inc(exemplar={"trace_id": "a"})
    await site.server.start()
    yield site
    await site.server.stop()


async def test_metrics_are_text_unless_asked_otherwise(site: Site) -> None:
    page = await site.get("/metrics")
    assert (page.status, page.content_type, page.encoding) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
        None,
    )
    assert b"calls_total 1.0\n" in page.body


async def test_metrics_are_openmetrics_with_exemplars_when_asked(site: Site) -> None:
    page = await site.get("/metrics", accept=f"{OPENMETRICS},text/plain;q=0.5")
    assert (page.status, str(page.content_type).partition("; escaping")[0]) == (
        200,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )
    assert b'calls_total 1.0 # {trace_id="a"} 1.0' in page.body
    assert page.body.endswith(b"# EOF\n")


async def test_metrics_are_compressed_when_asked(site: Site) -> None:
    page = await site.get("/metrics", accept_encoding="gzip")
    assert (page.status, page.encoding) == (200, "gzip")
    assert b"calls_total 1.0\n" in gzip.decompress(page.body)


async def test_a_strange_version_in_the_accept_header_gets_text(site: Site) -> None:
    page = await site.get("/metrics", accept="application/openmetrics-text; version=latest")
    assert (page.status, page.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")


async def test_several_scrapes_at_once_are_all_answered(site: Site) -> None:
    pages = await asyncio.gather(*(site.get("/metrics") for _ in range(8)))
    assert {page.body for page in pages} == {pages[0].body}


async def test_a_live_process_is_healthy(site: Site) -> None:
    site.unready.append("journal: disk full")
    assert await site.get("/healthz") == Page(200, "text/plain; charset=utf-8", None, b"ok\n")


async def test_readiness_gives_the_reasons_against_it(site: Site) -> None:
    assert await site.get("/readyz") == Page(200, "text/plain; charset=utf-8", None, b"ready\n")
    site.unready += ["journal: disk full", "receiver: stopping"]
    assert await site.get("/readyz") == Page(
        503, "text/plain; charset=utf-8", None, b"journal: disk full\nreceiver: stopping\n"
    )


async def test_a_standby_is_ready_and_not_active(site: Site) -> None:
    plain = "text/plain; charset=utf-8"
    assert await site.get("/activez") == Page(200, plain, None, b"active\n")
    site.inactive.append("standby: this process is not the gauge")
    standby = b"standby: this process is not the gauge\n"
    assert await site.get("/readyz") == Page(200, plain, None, standby)
    assert await site.get("/activez") == Page(503, plain, None, standby)
    site.unready.append("PostgreSQL cannot be used")
    assert await site.get("/readyz") == Page(503, plain, None, b"PostgreSQL cannot be used\n")
    assert (await site.get("/activez")).body == b"PostgreSQL cannot be used\n" + standby


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("HEAD", "/metrics", 200), ("POST", "/metrics", 405), ("GET", "/nowhere", 404)],
)
async def test_other_requests_are_answered_as_http_has_it(
    method: str, path: str, status: int, site: Site
) -> None:
    assert (await site.get(path, method)).status == status


@pytest.mark.parametrize(
    ("method", "path", "status", "title", "detail"),
    [
        (
            "GET",
            "/api/v1/nowhere",
            404,
            "Not Found",
            "found no such endpoint, expected one of /api/v1/openapi.json",
        ),
        ("PUT", "/api/v1/some", 405, "Method Not Allowed", "found PUT, expected GET, HEAD"),
    ],
)
def test_clients_of_the_api_get_a_problem_for_unknown_addresses_and_methods(
    method: str, path: str, status: int, title: str, detail: str
) -> None:
    app = create_app(CollectorRegistry(), with_own_authorization=[Route("/api/v1/some", _traces)])
    answer = TestClient(app).request(method, path)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
    }
    assert answer.headers.get("allow") == ("GET, HEAD" if status == 405 else None)


@pytest.mark.parametrize("path", ["/debug/traces", "/debug/scenarios"])
@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 403), ("", 403), ("localhost:9464", 200), ("[::1]:9464", 200)],
)
def test_pages_with_ids_of_telemetry_are_refused_to_unknown_names(
    path: str, host: str, status: int
) -> None:
    pages: dict[str, Any] = {"traces": _traces, "scenarios": _traces}
    app = TestClient(create_app(CollectorRegistry(), hosts=LOOPBACK, **pages))
    assert app.get(path, headers={"host": host}).status_code == status
    assert app.get("/metrics", headers={"host": host}).status_code == 200
    assert app.get("/healthz", headers={"host": host}).status_code == 200
    anybody = TestClient(create_app(CollectorRegistry(), **pages))
    assert anybody.get(path, headers={"host": host}).status_code == 200


def test_a_token_opens_pages_by_any_name(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("a-token-of-readers")
    (tmp_path / "tokens").chmod(0o600)
    readers = TokenFile(tmp_path / "tokens")
    app = create_app(CollectorRegistry(), readers=readers, hosts=LOOPBACK, traces=_traces)
    headers = {"host": "pathgauge.example", "authorization": "Bearer a-token-of-readers"}
    assert TestClient(app).get("/debug/traces", headers=headers).status_code == 200


def test_a_part_that_has_ended_is_told_to_probes() -> None:
    reasons: list[str] = []
    app = TestClient(create_app(CollectorRegistry(), unhealthy=lambda: reasons))
    assert (app.get("/healthz").status_code, app.get("/healthz").text) == (200, "ok\n")
    reasons.append("the thread 'pipeline' has ended by SystemExit")
    assert (app.get("/healthz").status_code, app.get("/healthz").text) == (503, f"{reasons[0]}\n")

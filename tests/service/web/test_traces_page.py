"""The page of open traces as HTML and as JSON, with and without an answer of the pipeline."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from prometheus_client import CollectorRegistry

from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.receivers.auth.tokens import TokenFile
from pathgauge.collector.receivers.server.asgi_server import HttpServer
from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.service.web.traces import MAX_TRACES, TOO_BUSY, traces_page
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Usage
from pathgauge.collector.testing import span, span_id, trace_id
from support.running import PATIENCE_S, Collector, until

TOKEN = "token-of-the-operators"

PIPELINE = PipelineUsage(open_traces=1, retained_traces=2, open_bytes=1500, max_open_bytes=200_000)
USAGE = CollectorUsage(Usage(), PIPELINE, queued_bytes=3, backlog_requests=4, backlog_age_s=5.25)
TOTALS = {
    "open_traces": 1,
    "spilled_traces": 0,
    "retained_traces": 2,
    "open_bytes": 1500,
    "max_open_bytes": 200_000,
    "queued_bytes": 3,
    "backlog_requests": 4,
    "backlog_age_s": 5.25,
    "store_state": "ok",
}
TRACE = Waiting(
    tenant="team-a",
    trace_id="ab" * 16,
    age=61.5,
    silence=3.25,
    spans=12,
    log_records=1,
    journal_rows=3,
    damaged=False,
    read_before=False,
    looked_at_in=2.75,
    waits_for=("a parent that has not arrived: cdcdcdcdcdcdcdcd", "quiet: 3.2 of 30 s (idle)"),
)


class Page(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Site:
    """The page with `answer` as the list of the pipeline; `None`: the pipeline is too busy."""

    def __init__(self, folder: Path) -> None:
        (folder / "tokens").write_text(TOKEN)
        self.usage = USAGE
        self.answer: list[Waiting] | None = [TRACE]
        self.asked: list[tuple[int, Future[list[Waiting]]]] = []
        page = traces_page(lambda: self.usage, self._explain, timeout=0.05)
        pages = create_app(CollectorRegistry(), readers=TokenFile(folder / "tokens"), traces=page)
        self.server = HttpServer(pages, "127.0.0.1:0")

    def _explain(self, max_traces: int) -> Future[list[Waiting]]:
        future: Future[list[Waiting]] = Future()
        self.asked.append((max_traces, future))
        if self.answer is not None:
            future.set_result(self.answer)
        return future

    async def get(self, query: str = "", accept: str = "", token: str = TOKEN) -> Page:
        return await asyncio.to_thread(
            self._get, query, {"Accept": accept, "Authorization": f"Bearer {token}"}
        )

    def _get(self, query: str, headers: dict[str, str]) -> Page:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", f"/debug/traces{query}", headers=headers)
            answer = connection.getresponse()
            return Page(
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read().decode(),
            )
        finally:
            connection.close()


@pytest_asyncio.fixture(name="site")
async def _site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path)
    await site.server.start()
    yield site
    await site.server.stop()


@pytest.mark.parametrize(
    ("query", "accept", "is_json"),
    [
        ("", "", False),
        ("", "*/*", False),
        ("", "text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("", "application/json", True),
        ("?format=json", "text/html", True),
        ("?format=html", "application/json", False),
    ],
)
async def test_people_get_html_and_scripts_json(
    query: str, accept: str, is_json: bool, site: Site
) -> None:
    page = await site.get(query, accept)
    assert (page.status, page.headers["content-type"]) == (
        200,
        "application/json" if is_json else "text/html; charset=utf-8",
    )


async def test_json_holds_the_totals_and_the_traces(site: Site) -> None:
    page = await site.get("?format=json")
    assert page.json == {
        **TOTALS,
        "traces": [{**asdict(TRACE), "waits_for": list(TRACE.waits_for)}],
    }
    assert [most for most, _ in site.asked] == [MAX_TRACES]


async def test_html_tells_the_same_in_a_table(site: Site) -> None:
    page = await site.get()
    assert '<tr><th>bytes of open traces<td class="number">1,500 of 200,000\n' in page.text
    cells = (
        "<tr><td>team-a"
        f'<td class="id">{TRACE.trace_id}'
        '<td class="number">61.5 s<td class="number">3.2 s<td class="number">12<td'
        ' class="number">1<td class="number">2.8 s'
        "<td>a parent that has not arrived: cdcdcdcdcdcdcdcd<br>quiet: 3.2 of 30 s (idle)\n"
    )
    assert cells in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none';")
    assert page.headers["cache-control"] == "no-store"
    assert "<script" not in page.text


async def test_html_says_what_is_special_about_a_trace(site: Site) -> None:
    site.answer = [
        replace(
            TRACE, spans=None, log_records=None, damaged=True, read_before=True, looked_at_in=-1.0
        )
    ]
    text = (await site.get()).text
    assert f"{TRACE.trace_id} (read before)" in text
    assert (
        '<td class="number">spilled, 3 rows, some lost<td class="number">spilled<td'
        ' class="number">now<td>' in text
    )


async def test_everything_is_escaped(site: Site) -> None:
    site.answer = [replace(TRACE, tenant="<b>&", trace_id='"><i>', waits_for=("<u>",))]
    text = (await site.get()).text
    assert ("<b>" in text, '"><i>' in text, "<u>" in text) == (False, False, False)
    assert "&lt;b&gt;&amp;" in text


async def test_the_page_says_how_many_it_does_not_show(site: Site) -> None:
    assert "<p>The" not in (await site.get()).text
    site.usage = USAGE._replace(pipeline=PIPELINE._replace(open_traces=100_000))
    assert "<p>The 1 oldest of 100,000." in (await site.get()).text
    site.answer = []
    assert "<p>No trace is open." in (await site.get()).text


@pytest.mark.parametrize("form", ["html", "json"])
async def test_a_pipeline_without_time_leaves_the_totals_and_is_not_asked_again(
    form: str, site: Site
) -> None:
    site.answer = None
    page = await site.get(f"?format={form}")
    assert page.status == 504
    if form == "json":
        assert page.json == {**TOTALS, "problem": TOO_BUSY}
    else:
        assert f"<p>{TOO_BUSY}" in page.text
        assert "1,500 of 200,000" in page.text
    [(_, future)] = site.asked
    assert future.cancelled()


async def test_the_page_takes_the_same_token_as_the_metrics(site: Site) -> None:
    page = await site.get(token="token-of-somebody-else")
    assert (page.status, site.asked) == (401, [])


@pytest.mark.slow
def test_a_running_collector_tells_what_is_open_by_ids_alone(tmp_path: Path) -> None:
    missing = span(
        "LOUD-child",
        "invoke_agent LOUD",
        {"gen_ai.operation.name": "invoke_agent", "LOUD": "LOUD"},
        parent="gone",
    )
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[missing.proto])])]
    )
    with Collector(tmp_path, assembly={"settle": "1h", "idle": "2h", "max_age": "3h"}) as collector:
        assert collector.post("/v1/traces", request.SerializeToString()) == (200, "")
        assert until(lambda: collector.value("pathgauge_traces_open") == 1)
        status, text = collector.get("/debug/traces", "application/json")
        html = collector.get("/debug/traces")[1]
    [trace] = json.loads(text)["traces"]
    assert (status, trace["trace_id"], trace["spans"], "LOUD" in text + html) == (
        200,
        trace_id("trace"),
        1,
        False,
    )
    assert trace["waits_for"][0] == f"a parent that has not arrived: {span_id('gone')}"
    assert span_id("gone") in html

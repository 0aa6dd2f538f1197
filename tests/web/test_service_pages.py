"""The pages of a running collector that scores traffic of the OpenTelemetry SDK."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browsed import TOKEN, browsed, result_links
from support.running import Collector
from support.web_client import text_of

pytestmark = pytest.mark.slow

SCENARIO = "/scenario?agent=support&scenario=refund-order"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with browsed(tmp_path_factory.mktemp("collector")) as running:
        yield running


def read(collector: Collector, path: str) -> str:
    status, page = collector.get(path)
    assert status == 200, page
    return page


def test_the_overview_leads_to_the_reason_of_a_failure_in_two_links(collector: Collector) -> None:
    overview = read(collector, "/")
    [signature] = re.findall(r'href="(/results[^"]*)"><bdi>lookup_order missing', overview)
    failures = read(collector, html.unescape(signature))
    result = read(collector, result_links(failures)[0])
    assert "<del>ZX</del>" in result
    assert "- missing lookup_order" in text_of(result)


def test_the_scenario_shows_each_version(collector: Collector) -> None:
    text = text_of(read(collector, SCENARIO))
    for version, verdicts in (
        ("2.4.0", "6 0 0 0%"),
        ("2.5.0", "0 6 0 100%"),
        ("2.5.1", "6 0 0 0%"),
    ):
        assert f"{version} {verdicts}" in text
    assert "lookup_order check_refund_policy issue_refund" in text


def test_results_have_times_tokens_and_calls_of_the_sdk(collector: Collector) -> None:
    [first, *_] = result_links(read(collector, "/results?version=2.4.0&scenario=refund-order"))
    text = text_of(read(collector, first))
    for shown in ("Model scripted", "tool issue_refund", "model scripted", "= matched"):
        assert shown in text
    assert re.search(r"Tokens [1-9][0-9]* in, [1-9][0-9]* out", text)


def test_every_link_of_the_pages_leads_somewhere(collector: Collector) -> None:
    known: set[str] = set()
    waiting = ["/", "/references", SCENARIO, result_links(read(collector, "/results"))[0]]
    while waiting and len(known) < 150:
        path = waiting.pop(0)
        page = read(collector, path)
        known.add(path)
        if path.startswith(("/static", "/metrics", "/api", "/debug")):
            continue
        found = {html.unescape(link) for link in re.findall(r'(?:href|src)="(/[^"]*)"', page)}
        waiting += found - known - set(waiting)
    assert {"/metrics", "/healthz", "/readyz", "/debug/traces", "/debug/scenarios"} <= known


def test_with_tokens_the_pages_ask_for_one(tmp_path: Path) -> None:
    token = tmp_path / "tokens"
    token.write_text(TOKEN)
    token.chmod(0o600)
    exporters = {"prometheus": {"endpoint": "127.0.0.1:0", "token_file": str(token)}}
    with Collector(tmp_path, store={}, exporters=exporters) as running:
        assert running.get("/")[0] == 303
        assert "Sign in" in text_of(running.get("/sign-in")[1])
        assert "No results yet" in text_of(running.get("/", token=TOKEN)[1])

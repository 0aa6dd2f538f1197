"""The page of scenario ids without a reference, as HTML and as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.service.web.scenarios import scenarios_page
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario

MISSPELT = UnknownScenario("acme", "refnd", ("refund",), 1_234)
HOSTILE = UnknownScenario("", "<script>alert(1)</script>", (), 1)


def client(*found: UnknownScenario, further: int = 0) -> TestClient:
    def snapshot() -> tuple[Sequence[UnknownScenario], int]:
        return found, further

    return TestClient(create_app(CollectorRegistry(), scenarios=scenarios_page(snapshot)))


def test_ids_are_shown_with_the_known_ones_most_like_them() -> None:
    text = client(MISSPELT, further=7).get("/debug/scenarios").text
    row = '<tr><td>acme<td class="id">refnd<td class="number">1,234<td class="id">refund'
    assert row in text
    assert "<p>7 invocations with further ids." in text


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_process_that_is_not_the_gauge_does_not_say_that_there_are_none(accept: str) -> None:
    page = scenarios_page(lambda: ((), 0), is_known=lambda: False)
    app = create_app(CollectorRegistry(), scenarios=page)
    answer = TestClient(app).get("/debug/scenarios", headers={"accept": accept})
    assert answer.status_code == 503
    assert answer.text.startswith("This process is not the gauge, and only the gauge knows")


def test_ids_appear_as_text() -> None:
    page = client(HOSTILE).get("/debug/scenarios")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")


def test_the_page_has_the_colours_that_the_browser_prefers() -> None:
    page = client(MISSPELT).get("/debug/scenarios").text
    assert '<meta name="color-scheme" content="light dark">' in page
    assert ":root { color-scheme: light dark }" in page
    assert not re.search(r"(?:color|background): *#", page)  # those of one scheme alone


def test_without_such_ids_the_page_says_so() -> None:
    assert (
        "Every scenario id that arrived has a reference." in client().get("/debug/scenarios").text
    )


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_programs_get_json(accept: str) -> None:
    query = "" if accept == "application/json" else "?format=json"
    page = client(MISSPELT, further=7).get(f"/debug/scenarios{query}", headers={"accept": accept})
    assert page.json() == {
        "unknown": [
            {"tenant": "acme", "scenario": "refnd", "closest": ["refund"], "invocations": 1_234}
        ],
        "further_invocations": 7,
    }

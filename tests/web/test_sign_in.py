"""Sign-in with a token, and what each token opens."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from pathgauge.collector.api.authorization import COOKIE
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.collector.web.app import VIEWS
from support.api_client import NORTH, READER, SOUTH, sources, with_tokens
from support.evaluated import commit, evaluation, opened
from support.web_client import ORIGIN, changed, site, text_of

OF_NORTH, OF_SOUTH = evaluation("n", tenant="north"), evaluation("s", tenant="south")
SAME_TALK = changed("t", conversation_id="talk", tenant="south")
TALK = changed("u", conversation_id="talk", tenant="north")

SCENARIO = "/scenario?agent=support&scenario=parcel"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        commit(store, [OF_NORTH, OF_SOUTH, SAME_TALK, TALK], time.time())
    return folder


@pytest.fixture
def pages(folder: Path, tmp_path: Path) -> TestClient:
    def scores() -> list[CurrentScore]:
        windows = [
            Window("support", f"of-{tenant}", "trajectory", 0.5, 0, 9, 0.0, tenant)
            for tenant in ("north", "south")
        ]
        return [CurrentScore(window, None, 1) for window in windows]

    unknown = [UnknownScenario(tenant, f"odd-{tenant}", (), 1) for tenant in ("north", "south")]
    return site(sources(folder, scores=scores, unknown=unknown), with_tokens(tmp_path))


def sign_in(pages: TestClient, token: str, origin: str = ORIGIN, address: str = "/") -> Any:
    return pages.post(
        "/sign-in", data={"token": token, "next": address}, headers={"origin": origin}
    )


def path_of(found: Evaluation) -> str:
    return f"/results/{found.invocation.trace_id}/{found.invocation.span_id}"


def test_without_a_token_every_page_leads_to_the_sign_in_and_back(pages: TestClient) -> None:
    for path in VIEWS:
        answer = pages.get(f"{path}?verdict=failed")
        assert answer.status_code == 303
        form = pages.get(answer.headers["location"])
        assert form.status_code == 200
        assert f'name="next" value="{path}?verdict=failed"' in unquote(form.text)


def test_a_live_update_without_a_token_is_refused_instead_of_led_away(pages: TestClient) -> None:
    assert pages.get("/results", headers={"hx-request": "true"}).status_code == 401


def test_a_known_token_signs_in_with_a_cookie_for_this_site_alone(pages: TestClient) -> None:
    answer = sign_in(pages, READER, address="/results?verdict=failed")
    assert (answer.status_code, answer.headers["location"]) == (303, "/results?verdict=failed")
    cookie = answer.headers["set-cookie"].lower()
    assert {part.strip() for part in cookie.split(";")} == {
        f"{COOKIE}={READER}",
        "httponly",
        "max-age=2592000",
        "path=/",
        "samesite=strict",
    }
    assert pages.get("/results").status_code == 200


def test_the_cookie_is_secure_if_the_browser_uses_tls_also_behind_a_proxy(
    pages: TestClient,
) -> None:
    answer = sign_in(pages, READER, "https://testserver")
    assert "; secure" in answer.headers["set-cookie"].lower()


def test_an_unknown_token_is_refused_with_a_message(pages: TestClient) -> None:
    for token in ("wrong", "", "x" * 5_000, "a\r\nset-cookie: b=c"):
        answer = sign_in(pages, token)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
        assert "This token is not known here." in text_of(answer.text)
    assert sign_in(pages, "x" * 20_000).status_code == 413


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://testserver.evil"])
def test_a_form_of_another_site_neither_signs_in_nor_out(pages: TestClient, origin: str) -> None:
    assert sign_in(pages, READER, origin).status_code == 403
    assert pages.post("/sign-out", headers={"origin": origin}).status_code == 403
    assert COOKIE not in pages.cookies


@pytest.mark.parametrize(
    "address", ["//evil.example", "/\\evil.example", "https://evil.example", "x", "/\na", ""]
)
def test_the_sign_in_leads_to_no_other_site(pages: TestClient, address: str) -> None:
    assert sign_in(pages, READER, address=address).headers["location"] == "/"


def test_the_sign_in_leads_to_an_address_in_any_script(pages: TestClient) -> None:
    for address in ("/results?agent=日本", "/results/日本", "/results?agent=\U0001f600"):
        found = sign_in(pages, READER, address=address)
        assert (found.status_code, unquote(found.headers["location"])) == (303, address)
    escaped = "/results?agent=%E6%97%A5&scenario=a%2Bb+c%26"
    assert sign_in(pages, READER, address=escaped).headers["location"] == escaped


def test_signing_out_removes_the_cookie(pages: TestClient) -> None:
    sign_in(pages, READER)
    answer = pages.post("/sign-out", headers={"origin": ORIGIN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert pages.get("/results").status_code == 303


def test_without_tokens_nobody_has_to_sign_in(folder: Path) -> None:
    found = site(sources(folder))
    assert found.get("/sign-in").headers["location"] == "/"
    assert "Sign out" not in found.get("/").text


def test_a_tenant_sees_its_own_data_alone(pages: TestClient) -> None:
    sign_in(pages, NORTH)
    own, other = path_of(TALK), (path_of(OF_SOUTH), path_of(SAME_TALK))
    for path in ("/", "/results", "/results?tenant=south", SCENARIO):
        page = pages.get(path).text
        assert (own in page, any(one in page for one in other)) == (True, False)
    overview = pages.get("/").text
    for name in ("of", "odd"):
        assert (f"{name}-north" in overview, f"{name}-south" in overview) == (True, False)
    assert "2 failed invocations" in text_of(pages.get("/").text)
    for path in other:
        for address in (path, f"{path}?tenant=south", f"{path}/reference.yaml"):
            assert pages.get(address).status_code == 404
    assert path_of(SAME_TALK) not in pages.get(own).text


def test_a_reader_sees_the_data_of_all_tenants(pages: TestClient) -> None:
    sign_in(pages, READER)
    page = pages.get("/results").text
    assert (path_of(OF_NORTH) in page, path_of(OF_SOUTH) in page) == (True, True)
    assert pages.get(f"{path_of(OF_SOUTH)}?tenant=south").status_code == 200
    assert pages.get(f"{path_of(OF_SOUTH)}?tenant=north").status_code == 404


def test_links_of_runs_from_before_tenants_were_configured_lead_to_these_runs(
    tmp_path: Path,
) -> None:
    own, other = evaluation("old"), evaluation("n", tenant="north")
    with opened(tmp_path / "store") as store:
        commit(store, [own, other], time.time())
    pages = site(sources(tmp_path / "store"), with_tokens(tmp_path))
    sign_in(pages, READER)
    for page in ("/", SCENARIO, path_of(own)):
        lists = re.findall(r'href="(/results\?[^"]*agent=support[^"]*)"', pages.get(page).text)
        found = [pages.get(html.unescape(one)).text for one in lists]
        assert {(path_of(own) in one) + 2 * (path_of(other) in one) for one in found} <= {1, 2}
        assert any(path_of(own) in one for one in found)


def test_the_cookie_of_a_reader_opens_the_pages_of_operators_too(pages: TestClient) -> None:
    assert pages.get("/metrics").status_code == 401
    sign_in(pages, SOUTH)
    assert pages.get("/metrics").status_code == 401
    sign_in(pages, READER)
    assert pages.get("/metrics").status_code == 200


def test_pages_of_operators_are_not_offered_to_tenants(pages: TestClient) -> None:
    sign_in(pages, SOUTH)
    assert 'href="/metrics"' not in pages.get("/").text
    sign_in(pages, READER)
    assert 'href="/metrics"' in pages.get("/").text


def test_an_unknown_endpoint_is_not_found_whatever_the_token(pages: TestClient) -> None:
    for token in ("", SOUTH, READER):
        sign_in(pages, token)
        answer = pages.get("/api/v1/nowhere")
        assert (answer.status_code, answer.json()["title"]) == (404, "Not Found")


@pytest.mark.parametrize("path", ["/", f"{SCENARIO}&x=%22%3E%3Cscript%3E"])
def test_a_link_of_another_site_is_asked_again_from_here(pages: TestClient, path: str) -> None:
    answer = pages.get(ORIGIN + path, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    [address] = re.findall(r'content="0; url=([^"]*)"', answer.text)
    assert html.unescape(address) == path
    assert pages.get(ORIGIN + path).headers["location"].startswith("/sign-in?")

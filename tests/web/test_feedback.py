"""The buttons on the page of a result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from pathgauge.collector.api.authorization import COOKIE, Authorization
from pathgauge.collector.api.feedback import FeedbackIntake
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.store.queries.feedback import Subject, about
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span_id, trace_id
from pathgauge.collector.web.app import routes
from pathgauge.collector.web.feedback import RATER_COOKIE
from support.api_client import NORTH, SOUTH, sources, with_tokens
from support.evaluated import commit, evaluation, opened
from support.web_client import ORIGIN, site, text_of

PAGE = f"/results/{trace_id('a')}/{span_id('a')}"
OF_NORTH = f"/results/{trace_id('n')}/{span_id('n')}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with opened(tmp_path / "store") as store:
        commit(store, [evaluation("a"), evaluation("n", tenant="north")])
        yield store


TENANTS = frozenset({"", "north", "south"})


def pages(
    store: SqliteStore,
    authorization: Authorization | None = None,
    tenants: frozenset[str] = TENANTS,
) -> TestClient:
    found, allowed = sources(store._folder), authorization or Authorization(None, None)
    intake = FeedbackIntake(store.record_feedback, tenants)
    own = routes(found, allowed, QueryThread(found.is_busy), intake=intake)
    app = create_app(CollectorRegistry(), readers=allowed.readers, with_own_authorization=own)
    return TestClient(app, base_url=ORIGIN, follow_redirects=False)


def click(browser: TestClient, page: str = PAGE, thumb: str = "up", **headers: str) -> int:
    headers = {"origin": ORIGIN, **headers}
    return browser.post(f"{page}/feedback", data={"thumb": thumb}, headers=headers).status_code


def said(store: SqliteStore, name: str = "a") -> list[tuple[str, str | None]]:
    with reading(store._folder) as connection:
        found = about(connection, Subject(trace_id(name)))
    return [(one.answer.tenant, one.answer.label) for one in found]


def test_a_second_click_revises_the_first(store: SqliteStore) -> None:
    browser = pages(store)
    assert click(browser) == 303
    assert said(store) == [("", "thumbs_up")]
    assert click(browser, thumb="down") == 303
    assert said(store) == [("", "thumbs_down")]
    assert click(pages(store)) == 303  # another browser
    assert said(store) == [("", "thumbs_up"), ("", "thumbs_down")]


def test_the_page_has_the_buttons_and_what_was_said(store: SqliteStore) -> None:
    browser = pages(store)
    answer = browser.post(f"{PAGE}/feedback", data={"thumb": "up"}, headers={"origin": ORIGIN})
    assert answer.headers["location"] == f"{PAGE}#people"
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in (RATER_COOKIE, "HttpOnly", "SameSite=strict"))
    page = browser.get(PAGE).text
    assert f'action="{PAGE}/feedback"' in page
    assert "thumbs_up" in text_of(page)


def test_where_no_feedback_is_taken_there_are_no_buttons(store: SqliteStore) -> None:
    browser = site(sources(store._folder))
    assert "/feedback" not in browser.get(PAGE).text
    assert click(browser) == 404


def test_there_are_no_buttons_about_runs_of_tenants_that_are_not_configured_any_more(
    store: SqliteStore,
) -> None:
    browser = pages(store, tenants=frozenset({"north"}))
    assert "👍 Good" not in browser.get(PAGE).text
    assert "👍 Good" in browser.get(OF_NORTH).text


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_another_site_cannot_answer(store: SqliteStore, origin: str) -> None:
    assert click(pages(store), origin=origin) == 403
    assert said(store) == []


@pytest.mark.parametrize("thumb", ["sideways", ""])
def test_a_form_without_a_thumb_is_refused(store: SqliteStore, thumb: str) -> None:
    assert click(pages(store), thumb=thumb) == 422
    assert said(store) == []


def test_an_unknown_result_is_refused(store: SqliteStore) -> None:
    assert click(pages(store), f"/results/{trace_id('x')}/{span_id('x')}") == 404


def test_of_several_tenants_the_one_without_a_name_is_answered_about_as_its_page_is_shown(
    store: SqliteStore,
) -> None:
    commit(store, [evaluation("a", tenant=name) for name in ("north", "south")])
    browser = pages(store)
    assert "👍 Good" in browser.get(PAGE).text
    assert click(browser) == 303
    assert said(store) == [("", "thumbs_up")]


def test_a_run_of_several_tenants_is_answered_about_only_with_a_tenant(store: SqliteStore) -> None:
    commit(store, [evaluation("n", tenant="south")])
    assert click(pages(store), OF_NORTH) == 409
    assert said(store, "n") == []


def test_a_tenant_answers_about_its_own_results(store: SqliteStore, tmp_path: Path) -> None:
    def browser(token: str = "") -> TestClient:
        found = pages(store, with_tokens(tmp_path))
        if token:
            found.cookies.set(COOKIE, token)
        return found

    assert click(browser(), OF_NORTH) == 401
    assert click(browser(SOUTH), OF_NORTH) == 404
    assert said(store, "n") == []
    assert click(browser(NORTH), OF_NORTH) == 303
    assert said(store, "n") == [("north", "thumbs_up")]

"""The pages in a real browser, over a real collector: no error in the console, no violation of
accessibility rules, no request to another host, no horizontal scrolling, in both themes.

`PATHGAUGE_SCREENSHOTS=folder` keeps a picture of every page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.sinks.prometheus.drift.recording import explained
from support.api_client import sources
from support.browsed import TOKEN, browsed, result_links, send
from support.browser import chromium, needs_chromium
from support.drifted import WALL, drifted
from support.monitoring import ONLY_MAKE_E2E
from support.running import Collector
from support.serving import serving
from support.web_client import site

pytestmark = [pytest.mark.e2e, pytest.mark.slow, ONLY_MAKE_E2E, needs_chromium]
WIDTHS = (360, 768, 920, 1280, 1920)
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
STATIC = {
    "overview": "/",
    "results": "/results",
    "filtered": "/results?verdict=failed&criterion=latency",
    "scenario": "/scenario?agent=support&scenario=refund-order",
    "references": "/references",
    "proposal": "/references/proposal?scenario=track-parcel",
}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with browsed(tmp_path_factory.mktemp("collector")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def origin(collector: Collector) -> str:
    return f"http://127.0.0.1:{collector.ports['metrics']}"


def watch(page: Page, home: str) -> list[str]:
    """What must not happen, as it happens."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))

    def follow(request: Any) -> None:
        if not request.url.startswith((f"{home}/", "data:")):
            wrong.append(request.url)

    def dismiss(dialog: Any) -> None:
        wrong.append("a script of the telemetry ran")
        dialog.dismiss()

    page.on("request", follow)
    page.on("dialog", dismiss)
    return wrong


def addresses(collector: Collector) -> dict[str, str]:
    def newest(query: str) -> str:
        return result_links(collector.get(f"/results?{query}")[1])[0]

    return {
        **STATIC,
        "failed": newest("version=2.5.0&scenario=refund-order"),
        "passed": newest("verdict=passed&agent=concierge"),
        "hostile": newest("scenario=refund-order"),
    }


def violations(page: Page) -> list[str]:
    return [
        f"{found['id']}: {found['nodes'][0]['html'][:200]}"
        for found in Axe().run(page).response["violations"]
    ]


def keep_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("PATHGAUGE_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_accessible_quiet_and_fits_the_window(
    collector: Collector, browser: Browser, theme: Literal["light", "dark"], width: int
) -> None:
    home = origin(collector)
    with browser.new_context(
        color_scheme=theme, viewport={"width": width, "height": 900}
    ) as context:
        page = context.new_page()
        wrong = watch(page, home)
        for name, path in addresses(collector).items():
            page.goto(home + path)
            overhang = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            keep_picture(page, f"{name}-{width}-{theme}")
            assert (path, overhang, violations(page)) == (path, 0, [])
        assert wrong == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_scores_that_became_worse_are_accessible_and_fit_the_window(
    browser: Browser,
    theme: Literal["light", "dark"],
    width: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time", lambda: WALL + 86_400)
    refund = SeriesKey("support", "refund-order", "tool_trajectory_avg_score")
    drifts = drifted(refund, refund._replace(scenario="track-parcel"), refund._replace(metric="f1"))
    fine = drifted(refund._replace(metric="latency"), bad=6)
    pages = site(sources(None, drifts=lambda: [*explained(drifts), *explained(fine)]))
    context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900})
    with serving(pages.app) as port, context:
        page = context.new_page()
        for name, path in {
            "worse": "/scenario?agent=support&scenario=refund-order",
            "agent-worse": "/scenario?agent=support",
            "overview-worse": "/",
        }.items():
            page.goto(f"http://127.0.0.1:{port}{path}")
            overhang = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            keep_picture(page, f"{name}-{width}-{theme}")
            assert (path, overhang, violations(page)) == (path, 0, [])
            assert page.get_by_role("heading", name="became worse").first.is_visible()


def test_the_link_of_an_alert_leads_to_the_diff_in_three_clicks(
    collector: Collector, browser: Browser
) -> None:
    home = origin(collector)
    with browser.new_context() as context:
        page = context.new_page()
        wrong = watch(page, home)
        page.goto(f"{home}/scenario?agent=support&scenario=track-parcel")
        page.get_by_role("link", name="lookup_order missing").first.click()
        page.get_by_role("link", name="lookup_order missing").first.click()
        assert page.get_by_role("heading", level=1).inner_text().startswith("failed")
        assert page.locator("del", has_text="ZX").first.is_visible()
        assert page.locator("ins", has_text="1042").first.is_visible()
        assert wrong == []


def test_the_pages_work_without_scripts(collector: Collector, browser: Browser) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{origin(collector)}/results")
        page.get_by_label("Verdict").select_option("failed")
        page.get_by_role("button", name="Apply").click()
        assert "verdict=failed" in page.url
        page.locator("td.reason a").first.click()
        page.get_by_role("link", name="Scenario", exact=True).click()
        assert page.locator("figure svg").count() == 4
        assert page.get_by_role("button", name="Pause").count() == 0


def test_new_results_appear_until_updates_are_paused(tmp_path: Path, browser: Browser) -> None:
    with browsed(tmp_path) as collector, browser.new_context() as context:
        page = context.new_page()
        home = origin(collector)
        wrong = watch(page, home)
        page.goto(f"{home}/results?limit=500")
        before = page.locator("tbody tr").count()
        more = send(collector)
        page.wait_for_function(
            "count => document.querySelectorAll('tbody tr').length == count", arg=before + more
        )
        page.get_by_role("button", name="Pause live updates").click()
        assert page.get_by_role("button", name="Resume live updates").is_visible()
        assert wrong == []


@pytest.mark.parametrize(("path", "updated_s"), [("/results", 5), ("/", 10)])
def test_live_updates_leave_the_keyboard_where_it_is(
    collector: Collector, browser: Browser, path: str, updated_s: int
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(origin(collector) + path)
        page.keyboard.press("Tab")  # to the keyboard, whatever has the focus
        focused = "document.activeElement.outerHTML"

        def updates() -> int:
            asked = "performance.getEntriesByType('resource').filter(one => one.initiatorType"
            found: int = page.evaluate(f"{asked} == 'xmlhttprequest').length")
            return found

        page.locator("#live a").nth(1).focus()
        link = page.evaluate(focused)
        page.wait_for_timeout(1_500 * updated_s)
        assert (page.evaluate(focused), updates()) == (link, 0)
        page.get_by_role("button", name="Pause live updates").focus()
        page.wait_for_timeout(1_500 * updated_s)
        assert page.evaluate("document.activeElement.textContent") == "Pause live updates"
        assert updates() > 0


def test_a_token_is_pasted_once(tmp_path: Path, browser: Browser) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKEN)
    tokens.chmod(0o600)
    exporters = {"prometheus": {"endpoint": "127.0.0.1:0", "token_file": str(tokens)}}
    with (
        browsed(tmp_path, exporters=exporters) as collector,
        browser.new_context() as context,
    ):
        page = context.new_page()
        home = origin(collector)
        page.goto(f"{home}/results?verdict=failed")
        assert violations(page) == []
        keep_picture(page, "sign-in")
        page.get_by_label("Token").fill("wrong-token")
        page.keyboard.press("Enter")
        assert page.get_by_role("alert").inner_text() == "This token is not known here."
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{home}/results?verdict=failed")
        page.goto(f"data:text/html,<a href='{home}/references'>from another site</a>")
        page.get_by_role("link").click()
        page.get_by_role("heading", name="References").wait_for()
        page.get_by_role("link", name="Metrics").click()
        assert "pathgauge_build_info" in page.content()
        page.go_back()
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{home}/sign-in")
        page.goto(f"{home}/")
        assert "/sign-in" in page.url


def test_the_keyboard_reaches_the_content(collector: Collector, browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{origin(collector)}/results")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

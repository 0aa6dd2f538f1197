"""Names, arguments and answers are text on every page, whatever they contain."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.collector.web.display import visible
from pathgauge.collector.web.links import proposal, results, scenario
from pathgauge.scorers.types import (
    AgentRun,
    ExpectedCall,
    ModelCall,
    Reference,
    ReferenceTurn,
    ToolCall,
)
from support.api_client import sources
from support.evaluated import WALL, commit, opened
from support.web_client import changed, site

TEXTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea></title></style><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066",
    "\x00\x1b[31m\x7f\x85\ufeff\u2028",
    "\ud800 lone",
    "&lt;b&gt;&#x3c;",
    "<!--",
    "]]>",
)
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MARK = "8d1f"
"""In every hostile text, so that its places are found."""
_ADDRESSES = {"href", "hx-get", "src", "action"}
_WITH_TEXT = {"href", "hx-get", "value", "data-chart", "aria-label"}


class Page(HTMLParser):
    """Where hostile text stands in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.found = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, given in attrs:
            value = given or ""
            is_code = name.startswith("on") or name == "style"
            is_foreign = name in _ADDRESSES and not value.startswith(("/", "#"))
            is_misplaced = MARK in value and name not in _WITH_TEXT
            self.found += value.count(MARK)
            if MARK in name + tag or is_code or is_foreign or is_misplaced:
                self.wrong.append(f"{tag} {name}={value}")
        if tag == "script" and "src" not in dict(attrs):
            self.wrong.append("script")

    def handle_data(self, data: str) -> None:
        self.found += data.count(MARK)

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"comment {data}")


def hostile(number: int) -> str:
    """A different text for each number, also of two kinds in a row."""
    kinds = len(TEXTS)
    second = TEXTS[number // kinds % kinds] if number >= kinds else ""
    return f"{MARK}{TEXTS[number % kinds]}{MARK}{number}{second}"


def all_hostile(number: int) -> dict[str, Any]:
    """The fields of an invocation, each with its own text. Protobuf has no lone surrogates, but the
    JSON inside of it has.
    """
    texts = iter(hostile(number + step) for step in range(40))
    names = (text.encode("utf-8", "replace").decode() for text in texts)
    name = next(texts)
    calls = (
        ToolCall(name, {next(texts): next(texts)}, result={next(texts): [next(texts)]}),
        ToolCall("find_order", {"order": next(texts)}, error=next(texts), agent=next(texts)),
        ToolCall(next(texts), next(texts)),
    )
    return {
        "tool_calls": calls,
        "agent": next(names),
        "agent_version": next(names),
        "scenario_id": next(names),
        "conversation_id": "talk",
        "user_input": next(texts),
        "final_response": next(texts),
        "error": True,
        "error_type": next(names),
        "model": next(texts),
        "model_calls": (ModelCall("m", model=next(texts), start_ns=1, end_ns=2),),
        "sub_agents": (
            AgentRun("s", next(texts), next(texts), user_input=next(texts), error=next(texts)),
        ),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        found = [changed(f"h{n}", "failed", **all_hostile(n)) for n in range(len(TEXTS))]
        commit(store, found, time.time())
    return folder


@pytest.fixture(scope="module")
def pages(folder: Path) -> TestClient:
    agent, of = (str(all_hostile(0)[name]) for name in ("agent", "scenario_id"))
    turn = ReferenceTurn(
        hostile(1), (ExpectedCall(hostile(2), {hostile(3): hostile(4)}),), hostile(5)
    )
    criterion = Criterion(hostile(6), ToolTrajectoryAvgScore(), 1.0)

    def scores() -> list[CurrentScore]:
        windows = [
            Window(agent, of, criterion.name, 0.5, 0, 9, WALL, version=version, values=(0.5,))
            for version in (None, hostile(8), hostile(9))
        ]
        return [CurrentScore(window, criterion, 1) for window in windows]

    return site(
        sources(
            folder,
            scores=scores,
            unknown=[UnknownScenario("", hostile(n), (hostile(n + 1),), 1) for n in range(12)],
            references=[Reference(of, (turn,), "v", hostile(7))],
        )
    )


def check(pages: TestClient, path: str, status: int = 200) -> None:
    answer = pages.get(path)
    assert answer.status_code == status
    page = Page()
    page.feed(answer.text)
    assert page.wrong == []
    assert page.found > 0
    shown = re.sub(
        r'value="[^"]*"', "", answer.text
    )  # the fields of the form come back as they are
    assert _INVISIBLE.findall(shown) == []


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_a_result_shows_hostile_text_as_text(pages: TestClient, number: int) -> None:
    found = changed(f"h{number}").invocation
    check(pages, f"/results/{found.trace_id}/{found.span_id}")
    answer = pages.get(f"/results/{found.trace_id}/{found.span_id}/reference.yaml")
    assert answer.status_code == 200
    assert [line for line in answer.text.splitlines() if line[:1] == "#"][-1].isprintable()


@pytest.mark.slow
def test_ten_thousand_hostile_texts_are_shown_as_text(tmp_path: Path) -> None:
    runs, texts_of_a_run = 455, 22
    found = [changed(f"h{n}", **all_hostile(n * texts_of_a_run)) for n in range(runs)]
    with opened(tmp_path) as store:
        for start in range(0, runs, 50):
            commit(store, found[start : start + 50], time.time())
    pages = site(sources(tmp_path))
    for one in found:
        check(pages, f"/results/{one.invocation.trace_id}/{one.invocation.span_id}")
    check(pages, "/results?limit=500")


def test_the_other_pages_show_hostile_text_as_text(pages: TestClient) -> None:
    fields = all_hostile(0)
    check(pages, "/")
    check(pages, "/results")
    check(pages, "/references")
    check(pages, proposal(str(fields["scenario_id"])))
    check(pages, scenario(str(fields["agent"]), str(fields["scenario_id"])))


@pytest.mark.parametrize("text", [hostile(number) for number in range(len(TEXTS))])
def test_hostile_filters_come_back_as_text(pages: TestClient, text: str) -> None:
    check(pages, results(agent=text, scenario=text, signature=text))
    check(pages, results(since=text, order=text), 422)
    check(pages, f"/?q={results(x=text)[11:]}")


def test_a_signature_of_a_hostile_failure_leads_to_its_runs(pages: TestClient) -> None:
    found = [
        one for one in re.findall(r'href="(/results\?[^"]*signature[^"]*)"', pages.get("/").text)
    ]
    assert found
    for link in found:
        assert 'href="/results/' in pages.get(link.replace("&amp;", "&")).text


def test_invisible_characters_become_visible_and_others_stay() -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x00\r\u202e\u200b\ud800") == "‹U+0000›‹U+000D›‹U+202E›‹U+200B›‹U+D800›"
    assert visible("שלום – 日本 👍🏽") == "שלום – 日本 👍🏽"


def test_megabytes_of_text_are_shortened_and_rendered_soon(tmp_path: Path) -> None:
    long = changed(
        "long",
        "failed",
        user_input="u " * 500_000,
        final_response="a b " * 250_000,
        tool_calls=tuple(ToolCall("find_order", {"order": "x" * 20_000}) for _ in range(300)),
    )
    with opened(tmp_path) as store:
        commit(store, [long], WALL)
    found = site(sources(tmp_path))
    began = time.monotonic()
    page = found.get(f"/results/{long.invocation.trace_id}/{long.invocation.span_id}")
    assert (page.status_code, len(page.text) < 500_000) == (200, True)
    assert time.monotonic() - began < 2.0
    assert "texts and lists below are shortened" in page.text
    assert "show all" in page.text
    refused = found.get(
        f"/results/{long.invocation.trace_id}/{long.invocation.span_id}/reference.yaml"
    )
    assert refused.status_code == 409

"""`pathgauge score --html` and `--markdown`: reports for people, in which telemetry stays text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from typer.testing import Result

from support.repository import CAPTURES

Run = Callable[..., Result]

HOSTILE = (
    '</pre><script>alert(1)</script>" onload=x | `code` ```` [a](http://x) @team www.x.example #1\n'
    "<!-- \x1b[31m {{ 7*7 }} {% raw %}"
)


def row(name: str, **fields: Any) -> dict[str, Any]:
    call = {"tool_name": "find_user", "tool_input": {"id": 7, "note": "a b c"}}
    return {
        "id": name,
        "prompt": "Who is it?",
        "predicted_trajectory": [call],
        "reference_trajectory": [call],
        "response": "It is Ada.",
        "reference": "It is Ada.",
        **fields,
    }


def failing(name: str) -> dict[str, Any]:
    expected = {"tool_name": "find_user", "tool_input": {"id": 7, "note": "a b d"}}
    return row(name, reference_trajectory=[expected, {"tool_name": "reset", "tool_input": {}}])


def write(folder: Path, *rows: dict[str, Any]) -> str:
    (folder / "runs.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return "runs.jsonl"


class Page(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def html(run: Run, folder: Path, *files: str | Path) -> Page:
    result = run("score", *files, "--html", "report.html")
    assert result.exit_code in (0, 1), result.output
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def markdown(run: Run, *files: str | Path) -> str:
    result = run("score", *files, "--markdown", "-")
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def test_the_page_shows_failures_first_with_what_differs(run: Run, folder: Path) -> None:
    page = html(run, folder, write(folder, row("good"), failing("bad")))
    text = " ".join(page.text.split())
    assert text.index("failed (no name) bad: missing_call") < text.index("passed (no name) good")
    assert "1 of 2 need attention; they come first." in text
    assert [one for tag, one in page.tags if tag == "details"] == [{"open": None}, {}]
    assert 'find_user(id=7, note="a b d")' in text
    marked = re.findall(r"<mark>(.*?)</mark>", (folder / "report.html").read_text())
    assert marked == ["d", "c"]


def test_marks_have_the_words_of_the_pages(run: Run, folder: Path) -> None:
    unknown = row("1", predicted_trajectory=[{"tool_name": "find_user"}])
    page = html(run, folder, write(folder, unknown))
    marks = [tag.get("title") for name, tag in page.tags if tag.get("class") == "mark"]
    assert marks == ["arguments not recorded"]


def test_the_page_needs_no_other_file_and_no_network(run: Run, folder: Path) -> None:
    page = html(run, folder, CAPTURES / "google-adk-native" / "S2")
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe", "form"})
    assert not any({"src", "href"} & one.keys() for _, one in page.tags)
    assert ("meta", "default-src 'none'; style-src 'unsafe-inline'") in [
        (tag, one.get("content")) for tag, one in page.tags
    ]
    assert "url(" not in (folder / "report.html").read_text()


def test_hostile_texts_are_text_on_the_page(run: Run, folder: Path) -> None:
    plain = {tag for tag, _ in html(run, folder, write(folder, failing("bad"))).tags}
    call = {"tool_name": HOSTILE, "tool_input": {HOSTILE: HOSTILE}}
    page = html(
        run,
        folder,
        write(
            folder,
            row(HOSTILE, prompt=HOSTILE, response=HOSTILE, predicted_trajectory=[call]),
        ),
    )
    assert {tag for tag, _ in page.tags} <= plain | {"mark"}
    assert not any("onload" in one for _, one in page.tags)
    assert page.text.count("<script>alert(1)</script>") > 5
    assert "{{ 7*7 }}" in page.text


def test_markdown_has_the_table_and_the_failures_as_diffs(run: Run, folder: Path) -> None:
    text = markdown(run, write(folder, row("good"), failing("bad")))
    table, _, failures = text.partition("<details>")
    assert table.startswith("## pathgauge: not passed\n")
    assert "| (no name) | bad | tool_trajectory_avg_score | 0.000 | 1.000 | 1 of 1 |" in table
    assert "good" not in failures
    assert (
        "```diff\n"
        '- find_user(id=7, note="a b d")\n'
        '+ find_user(id=7, note="a b c")\n'
        "- reset()\n"
        "```\n"
    ) in failures


def test_hostile_texts_are_text_in_markdown(run: Run, folder: Path) -> None:
    call = {"tool_name": HOSTILE, "tool_input": {HOSTILE: HOSTILE}}
    rows = [row(HOSTILE, prompt=HOSTILE, response=HOSTILE, predicted_trajectory=[call])]
    text = markdown(run, write(folder, *rows))
    outside = re.sub(r"^(`{3,})\w*\n.*?\n\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert text.count("\n`````") >= 2, "a fence must be longer than those in the text"
    assert "alert(1)" in outside
    assert "&#60;script&#62;" in outside
    for forbidden in ("<script", "<!--", "[a]", "http://", "www.", "`", "\x1b"):
        assert forbidden not in outside, forbidden
    tags = re.findall(r"<(\w+)", MarkdownIt("commonmark").enable("table").render(text))
    assert set(tags) == {
        *("h2", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "strong"),
        *("details", "summary", "p", "pre", "code"),
    }
    rendered = unescape(outside)
    assert "@\u200bteam" in rendered
    assert "#\u200b1" in rendered
    assert not re.search("@team|#1", rendered)
    header, *lines = [line for line in outside.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {header.count("|")}


@pytest.mark.slow
def test_a_report_of_many_failures_is_bounded_and_says_so(run: Run, folder: Path) -> None:
    file = write(folder, *(failing(f"{number}") for number in range(600)))
    text = markdown(run, file)
    assert text.count("<details>") == 20
    assert "And 580 more" in text
    assert "more lines." in text
    page = html(run, folder, file)
    assert sum(tag == "details" for tag, _ in page.tags) == 500
    assert "Only the first 500 are shown." in page.text


@pytest.mark.slow
def test_markdown_stays_below_the_limit_of_github(run: Run, folder: Path) -> None:
    long = {"prompt": "\u4e00" * 100_000, "response": "\u4e00" * 100_000}
    calls = [{"tool_name": "\u4e00" * 3_000, "tool_input": {}}] * 100
    rows = [row(f"{number}", **long, predicted_trajectory=calls) for number in range(25)]
    text = markdown(run, write(folder, *rows))
    assert len(text.encode()) < 1 << 20
    assert re.search(r"And \d+ more; `--html` shows them\.\n$", text)
    assert text.count("<details>") == text.count("</details>")


def test_markdown_is_written_to_a_file_beside_the_table(run: Run, folder: Path) -> None:
    result = run("score", write(folder, row("good")), "--markdown", "summary.md")
    assert result.exit_code == 0
    assert result.stdout.startswith("agent\t")
    assert (folder / "summary.md").read_text().startswith("## pathgauge: passed\n")


@pytest.mark.parametrize("option", ["--json", "--details", "--failed"])
def test_markdown_on_standard_output_is_printed_alone(run: Run, folder: Path, option: str) -> None:
    result = run("score", write(folder, row("good")), "--markdown", "-", option)
    assert result.exit_code == 2
    assert "--markdown - cannot be combined" in result.stderr

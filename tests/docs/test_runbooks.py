"""Every alert has a runbook, every runbook an alert, and the queries in runbooks are valid."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from pathgauge.collector.config import Config
from pathgauge.collector.service.engine import RELOADED
from support.promtool import alert_rules, needs_promtool, rule_groups
from support.repository import DOCS

PAGES = sorted((DOCS / "runbooks").glob("Pathgauge*.md"))
INDEX = (DOCS / "runbooks" / "README.md").read_text()
ALERTS = {rule["alert"]: rule for rule in alert_rules()}
SECTIONS = ["Impact", "Check first", "Causes and fixes", "Silencing"]
QUERY = re.compile(r"^```promql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^pathgauge .+$|(?<=`)pathgauge [^`]+", re.MULTILINE)
AMTOOL = re.compile(r"^amtool (?:.*\\\n)*.*$|(?<=`)amtool [^`]+", re.MULTILINE)
READING = {"results", "explain", "verdict", "validate", "score", "judge"}
NAME = re.compile(r"\b(?:\w+:)?pathgauge_\w+(?::\w+)?")


def queries(page: Path) -> list[str]:
    """One query a line. A line that begins with an operator continues the query before it."""
    return [
        query
        for block in QUERY.findall(page.read_text())
        for query in re.split(r"\n(?![/*+-] )", block.strip())
    ]


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert {page.stem for page in PAGES} == set(ALERTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_all_its_sections(page: Path) -> None:
    title, *rest = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    assert (title, rest) == (page.stem, SECTIONS)
    assert re.search(r"^\| cause \| fix \|\n\|---\|---\|\n\| \S", page.read_text(), re.MULTILINE)


def test_the_index_names_every_alert_with_its_severities() -> None:
    severities: dict[str, list[str]] = {}
    for rule in alert_rules():
        known = severities.setdefault(rule["alert"], [])
        known += [] if rule["labels"]["severity"] in known else [rule["labels"]["severity"]]
    rows = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \| (.*) \|$", INDEX, re.MULTILINE)
    assert rows == [(name, name, ", ".join(known)) for name, known in severities.items()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_says_which_collector_is_meant(page: Path) -> None:
    """Typed as it is, it would read a store in the present folder otherwise."""
    commands = [
        command for command in COMMAND.findall(page.read_text()) if command.split()[1] in READING
    ]
    assert [one for one in commands if "--url" not in one and "--config" not in one] == []


def test_a_command_says_which_alertmanager_is_meant() -> None:
    """Only the package of Debian has a default."""
    pages = [INDEX, *(page.read_text() for page in PAGES)]
    commands = [command for page in pages for command in AMTOOL.findall(page)]
    assert len(commands) == 2
    assert [one for one in commands if "--alertmanager.url" not in one] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_runs_without_a_score_are_not_looked_for_among_failed_ones_only(page: Path) -> None:
    commands = COMMAND.findall(page.read_text())
    assert [one for one in commands if "--reason" in one and "--all" not in one] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_fix_asks_for_a_reload_only_where_a_reload_is_enough(page: Path) -> None:
    rows = [row for row in page.read_text().splitlines() if row.startswith("|") and "reload" in row]
    sections = {name for row in rows for name in re.findall(r"`(\w+)(?:\.[\w.]+)?`", row)}
    assert sections & Config.model_fields.keys() - RELOADED == set()


def test_the_pages_name_no_series_that_does_not_exist() -> None:
    documented = set(
        re.findall(r"^\| `(pathgauge_\w+)` \|", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    )
    recorded = {
        rule["record"] for group in rule_groups() for rule in group["rules"] if "record" in rule
    }
    named = {
        name for page in [*PAGES, DOCS / "alerting.md"] for name in NAME.findall(page.read_text())
    }
    assert {
        name for name in named if re.sub(r"_(sum|count|bucket)$", "", name) not in documented
    } <= recorded


def test_the_page_about_alerting_has_every_alert_in_its_table() -> None:
    section = (
        (DOCS / "alerting.md").read_text().partition("## What fires when")[2].partition("\n## ")[0]
    )
    assert set(re.findall(r"`(Pathgauge\w+)`", section)) == set(ALERTS)


@needs_promtool
def test_prometheus_can_parse_the_queries(tmp_path: Path) -> None:
    every = [query for page in PAGES for query in queries(page)]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(every)]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    checked = subprocess.run(
        ["promtool", "check", "rules", file], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert len(every) > 20

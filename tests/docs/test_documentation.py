"""What the documentation names exists: links, make targets, commands and their options."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from pathgauge.collector.core.invocations.dialects import Dialect, Kind
from support.repository import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")])
SOURCES = ("collector", "scorers", "pathgauge", "tests", "docs", "deploy", ".ci")

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(?:^|`)make ([a-z0-9-]+)", re.MULTILINE)
TARGET = re.compile(r"^([a-z0-9-]+):.*## ", re.MULTILINE)
CODE = re.compile(r"`(\w+)[`(]")
PERSONAL_PATH = re.compile(r"(?<![\w.~}])/(?:work|home|root|Users)/\w")


def entry_names(page: Path) -> set[str]:
    """The fragments by which headings are linked to, as GitHub makes them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_broken(page: Path, link: str) -> bool:
    path, _, fragment = link.partition("#")
    target = page.parent / path if path else page
    return not target.exists() or bool(
        fragment and target.suffix == ".md" and fragment not in entry_names(target)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = [
        link
        for link in LINK.findall(FENCE.sub("", page.read_text()))
        if not re.match(r"[a-z]+:", link)
    ]
    assert [link for link in links if is_broken(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    assert set(MAKE.findall(page.read_text())) <= set(
        TARGET.findall((ROOT / "Makefile").read_text())
    )


def test_the_command_line_reference_is_what_the_commands_say() -> None:
    command = [
        sys.executable,
        "-m",
        "typer",
        "pathgauge.collector.cli",
        "utils",
        "docs",
        "--name",
        "pathgauge",
    ]
    says = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs/cli.md").read_text().strip() == says.strip(), (
        "docs/cli.md is out of date: run `make docs`"
    )


def folders(root: Path) -> set[str]:
    """The packages below `root`, relative to it."""
    return {str(file.parent.relative_to(root)) for file in root.rglob("__init__.py")} - {"."}


def drawn(page: str, root: str) -> set[str]:
    """The packages that the picture of the architecture shows below `root`."""
    lines = re.match(r"(?:  .*\n)*", page.partition(f"\n{root}/\n")[2])
    rows = re.findall(r"^( +)(\w+)/", lines[0] if lines else "", re.MULTILINE)
    found: set[str] = set()
    parents: list[str] = []
    for indent, name in rows:
        parents = [*parents[: len(indent) // 2 - 1], name]
        found.add("/".join(parents))
    return found


@pytest.mark.parametrize("root", ["collector", "scorers"])
def test_the_picture_of_the_architecture_equals_the_folders(root: str) -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    assert drawn(page, root) == folders(ROOT / root)


@pytest.mark.parametrize("root", ["collector", "scorers"])
def test_a_newcomer_sees_at_most_fourteen_entries(root: str) -> None:
    entries = [path for path in (ROOT / root).iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 14


def test_the_contract_of_a_dialect_names_all_of_it_and_nothing_else() -> None:
    page = (ROOT / "docs/adding-a-dialect.md").read_text()
    contract = page.partition("## The contract")[2].partition("\n## ")[0]
    bullets = re.findall(r"^- (.*?)(?=\n- |\n\n)", contract, re.MULTILINE | re.DOTALL)
    fields = {field.name for field in dataclasses.fields(Dialect)} - {"name"}
    hooks = next(bullet for bullet in bullets if bullet.startswith("The other hooks"))
    named = {name for bullet in bullets for name in CODE.findall(bullet)}
    assert sorted((fields | set(get_args(Kind))) - named) == []
    assert sorted(set(CODE.findall(hooks)) - fields) == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [
        path
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    texts = {path.relative_to(ROOT): path.read_bytes().decode(errors="ignore") for path in files}
    assert {
        path: PERSONAL_PATH.findall(text)
        for path, text in texts.items()
        if PERSONAL_PATH.search(text)
    } == {}

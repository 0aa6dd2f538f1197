"""docs/adding-a-command.md works: its command and its test are run as they are printed there."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pathgauge.collector.cli import app
from support.repository import CAPTURES, DOCS

PAGE = (DOCS / "adding-a-command.md").read_text(encoding="utf-8")
COMMAND, TEST = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command of the page, registered beside the real ones."""
    (tmp_path / "agents.py").write_text(COMMAND, encoding="utf-8")
    registered = typer.Typer(rich_markup_mode=None)
    registered.command("agents")(runpy.run_path(str(tmp_path / "agents.py"))["agents"])
    registered.add_typer(app, name="others")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(registered, [str(one) for one in arguments])


def test_the_test_of_the_page_passes(run: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "test_agents.py").write_text(TEST, encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "test_agents.py"))
    names["test_the_invocations_of_each_agent_are_counted"](run, tmp_path)


def test_the_command_of_the_page_prints_what_the_page_says(run: Callable[..., Result]) -> None:
    path = CAPTURES / "google-adk-native" / "S2" / "traces.binpb.gz"
    assert str(path.relative_to(CAPTURES.parents[2])) in PAGE
    result = run("agents", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.fullmatch(r"1 \w+\n", result.stdout)


def test_the_names_that_the_page_uses_exist() -> None:
    paths = set(re.findall(r"`?((?:collector|tests)/cli/\w+\.py)", PAGE))
    new = {"collector/cli/agents.py", "tests/cli/test_agents_command.py"}
    assert [path for path in sorted(paths - new) if not (DOCS.parent / path).exists()] == []

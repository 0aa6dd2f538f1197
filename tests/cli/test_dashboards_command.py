"""`pathgauge dashboards`, and what is not a command: the version, short options, completion."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import Result

from support.repository import ROOT

Run = Callable[..., Result]


def test_the_dashboards_are_those_of_the_repository(run: Run, folder: Path) -> None:
    result = run("dashboards", "--output", "a/b")
    originals = {
        file.name: file.read_text() for file in (ROOT / "deploy/grafana/dashboards").iterdir()
    }
    assert {file.name: file.read_text() for file in (folder / "a/b").iterdir()} == originals
    assert result.stdout.splitlines() == [f"a/b/{name}" for name in sorted(originals)]


def test_a_folder_that_cannot_be_made_is_an_error(run: Run, folder: Path) -> None:
    (folder / "a").write_text("")
    result = run("dashboards", "--output", "a/b")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "pathgauge: a/b: Not a directory\n"


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version").stdout == f"pathgauge {version('pathgauge')}\n"


@pytest.mark.parametrize("arguments", [("-h",), ("score", "-h"), ("judge", "check", "-h")])
def test_h_is_short_for_help(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).stdout == run(*arguments[:-1], "--help").stdout != ""


def test_completion_can_be_installed(run: Run) -> None:
    assert "--install-completion" in run("--help").stdout

"""Runs commands in this process, in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pathgauge.collector.cli import app
from support.api_client import READER


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the commands."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Callable[..., Result]:
    """`run("score", "traces.bin")`, on a terminal wide enough for every table."""

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(
            app, [str(argument) for argument in arguments], env={"COLUMNS": "200", "TERM": "dumb"}
        )

    return invoke


@pytest.fixture(params=["store", "api"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sequence[object]:
    """The options that name a store, and those that name the API over it. The file of the test has
    fixtures for both: `store`, the folder of a configuration, and `served`, a URL.
    """
    if request.param == "store":
        return "--config", request.getfixturevalue("store") / "pathgauge.yaml"
    monkeypatch.setenv("PATHGAUGE_TOKEN", READER)
    return "--url", request.getfixturevalue("served")

"""`--help` is quick, because it loads nothing but typer and the definitions of the commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from pathgauge.collector.cli import app

HEAVY = (
    "asyncio",
    "google",
    "grpc",
    "jsonschema",
    "opentelemetry",
    "orjson",
    "prometheus_client",
    "pydantic",
    "regex",
    "requests",
    "rich",
    "yaml",
)
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
MODULE_OF_COMMANDS = re.compile(r"pathgauge\.collector\.cli\.(?!demo|output)\w+")
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.MULTILINE)


def imported(*arguments: str) -> set[str]:
    """The modules that the installed command imports."""
    command = Path(sys.executable).with_name("pathgauge")
    run = subprocess.run(
        [sys.executable, "-X", "importtime", command, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Usage: pathgauge" in run.stdout
    return set(IMPORTED.findall(run.stderr))


def test_help_loads_no_heavy_module() -> None:
    modules = imported("--help")
    assert "typer" in modules
    assert sorted(modules & set(HEAVY)) == []


@pytest.mark.parametrize("command", ["score", "judge"])
def test_the_help_of_a_command_loads_only_what_typer_parses_options_with(command: str) -> None:
    assert imported(command, "--help") & set(HEAVY) <= {"pydantic"}


def test_help_loads_no_module_of_the_project_but_the_commands() -> None:
    own = {name for name in imported("--help") if name.startswith("pathgauge")}
    others = own - {"pathgauge", "pathgauge.__main__"}
    others -= {"pathgauge.collector", "pathgauge.collector.cli"}
    assert [name for name in others if not MODULE_OF_COMMANDS.fullmatch(name)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_a_whole_sentence_for_each(name: str) -> None:
    assert not COMMANDS[name].get_short_help_str(limit=60).endswith("...")

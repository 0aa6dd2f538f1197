"""`pathgauge scorers` as text and JSON, and the help of every command."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from rich.console import Console
from typer.main import get_group
from typer.testing import Result

from pathgauge.collector.cli import app
from pathgauge.collector.cli.output.scorer_catalogue import catalogue
from pathgauge.collector.cli.output.scorer_list import print_catalogue
from pathgauge.collector.config.plugins.scorers import SCORERS
from support.repository import CAPTURES

Run = Callable[..., Result]

COMMANDS = sorted(get_group(app).commands)
PATHGAUGE = Path(sys.executable).with_name("pathgauge")


@pytest.mark.slow
def test_scorer_names_are_complete_on_a_narrow_terminal() -> None:
    narrow = {**os.environ, "COLUMNS": "60"}
    printed = subprocess.run(
        [PATHGAUGE, "scorers"], capture_output=True, text=True, check=True, env=narrow
    ).stdout
    assert [name for name in SCORERS.names() if name not in printed] == []


def test_options_are_listed_with_their_types_and_defaults(run: Run) -> None:
    printed = run("scorers").stdout
    assert "tool_name: text (required)" in printed
    assert "ordered: true | false = true" in printed
    assert "duplicates: membership | multiset = membership" in printed


def test_in_a_pipe_each_text_is_one_line() -> None:
    written = io.StringIO()
    print_catalogue(catalogue(), Console(file=written, width=60))
    lines = written.getvalue().splitlines()
    for entry in catalogue():
        assert f"  {entry.summary}" in lines
        assert {f"{' ' * 8}{option.text}" for option in entry.options} <= set(lines)


def test_json_is_strict_and_equals_the_catalogue(run: Run) -> None:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is no JSON")

    result = run("scorers", "--json")
    entries = json.loads(result.stdout, parse_constant=refuse)
    assert [entry["name"] for entry in entries] == list(SCORERS.names())
    assert {entry["high"] for entry in entries if entry["name"] in ("latency", "total_tokens")} == {
        None
    }
    assert [[option["name"] for option in entry["options"]] for entry in entries] == [
        [o.name for o in entry.options] for entry in catalogue()
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(command: str, run: Run) -> None:
    result = run(command, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"Example: `pathgauge {command}" in " ".join(result.stdout.split())


def test_without_a_command_the_help_lists_all_of_them(run: Run) -> None:
    result = run()
    assert [command for command in COMMANDS if command not in result.output] == []


@pytest.mark.slow
def test_a_closed_output_pipe_is_no_error(folder: Path) -> None:
    captures = CAPTURES
    files = " ".join(
        str(path) for path in sorted(captures.glob("google-adk*/S*/traces.binpb.gz")) * 20
    )
    printed = subprocess.run(
        f"{PATHGAUGE} invocations {files} | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert (printed.stdout.count("\n"), printed.stderr) == (1, "")

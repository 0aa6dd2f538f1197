"""docs/curating.md shows what `pathgauge lint` prints for the demo."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathgauge.collector.cli import app
from pathgauge.collector.cli.demo.scripts import CONCIERGE, SUPPORT
from support.repository import DOCS, ROOT
from support.turns import otlp, turn

PAGE = (DOCS / "curating.md").read_text(encoding="utf-8")
[SHOWN] = re.findall(r"^\$ pathgauge lint demo.binpb .*?\n(.*?)^```", PAGE, re.M | re.S)


def test_the_table_of_the_demo_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        turn(script, agent.name, agent.release.version, f"{number} {script.scenario_id}")
        for number in range(25)
        for agent in (CONCIERGE, SUPPORT)
        for script in agent.release.scripts
    ]
    monkeypatch.chdir(tmp_path)
    Path("demo.binpb").write_bytes(otlp(*runs))
    demo = ROOT / "collector" / "cli" / "demo"
    shutil.copy(demo / "pathgauge.yaml", "pathgauge.yaml")
    shutil.copytree(demo / "references", "references")
    result = CliRunner().invoke(app, ["lint", "demo.binpb", "--config", "pathgauge.yaml"])
    assert result.exit_code == 0
    assert aligned(result.stdout) == aligned(SHOWN)


def aligned(text: str) -> list[list[str]]:
    """The cells of each line; a terminal aligns them with blanks."""
    return [re.split(r"\t| {2,}", line) for line in text.splitlines() if line]

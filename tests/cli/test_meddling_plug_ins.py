"""Commands with a plug-in that prints, and changes the working directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from support.turns import otlp_json, script, turn

Run = Callable[..., Result]

CODE = """
import os
from dataclasses import dataclass
from typing import ClassVar

from pathgauge import Score

print("printed at import")
os.chdir("/")


@dataclass(frozen=True)
class Meddling:
    name: ClassVar[str] = "meddling"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual, expected):
        print("printed while it scores")
        os.chdir("/")
        return Score(1.0)
"""


@pytest.fixture(autouse=True)
def meddling(folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    module = request.node.name  # imported anew by each test
    (folder / f"{module}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(folder))
    (folder / "refs.yaml").write_text("scenario: s\nexpected_tools: [a]\n")
    scorer = f"{{scorer: '{module}:Meddling', threshold: 1}}"
    (folder / "pathgauge.yaml").write_text(
        f"criteria: {{meddling: {scorer}}}\nreferences: [refs.yaml]\n"
    )
    for name in ("one", "two"):
        (folder / f"{name}.jsonl").write_bytes(otlp_json(turn(script("s", "a"), conversation=name)))


def test_relative_references_are_found(run: Run) -> None:
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stderr) == (0, "")


def test_standard_output_of_a_gate_is_its_result_and_relative_files_are_found(
    run: Run, folder: Path
) -> None:
    options = ("-c", "pathgauge.yaml", "--json", "--junit", "junit.xml")
    result = run("score", "one.jsonl", "two.jsonl", *options)
    assert result.exit_code == 0
    runs_and_gate = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(runs_and_gate) == 3
    printed = [line for line in result.stderr.splitlines() if line.startswith("printed")]
    assert printed == ["printed at import", *2 * ["printed while it scores"]]
    assert (folder / "junit.xml").exists()

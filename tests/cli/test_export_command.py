"""`pathgauge export` writes an ADK evalset, and reports what ADK cannot express."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from support.repository import REFERENCE_FILES

Run = Callable[..., Result]

GOLDEN = REFERENCE_FILES


def test_an_evalset_is_named_after_its_file_or_after_the_first_one_read(
    run: Run, folder: Path
) -> None:
    result = run(
        "export", GOLDEN / "native.yaml", GOLDEN / "dialogue.yaml", "-o", "home.evalset.json"
    )
    assert (result.exit_code, result.output) == (0, "")
    written = json.loads((folder / "home.evalset.json").read_text())
    printed = json.loads(
        run("export", "--format", "adk", GOLDEN / "native.yaml", GOLDEN / "dialogue.yaml").stdout
    )
    assert (written.pop("eval_set_id"), printed.pop("eval_set_id")) == ("home", "native")
    assert written == printed
    assert [case["eval_id"] for case in written["eval_cases"]] == ["lights_off", "small talk"]


def test_an_exported_evalset_can_be_imported_without_a_change(run: Run) -> None:
    assert run("export", GOLDEN / "dialogue.yaml", "-o", "e.json").exit_code == 0
    again = run("import", "adk", "e.json").stdout
    assert again == run("import", "auto", GOLDEN / "dialogue.yaml").stdout


def test_what_adk_cannot_express_is_an_error_unless_lossy(run: Run, folder: Path) -> None:
    (folder / "r.yaml").write_text(
        "scenario: s\nexpected_tools: [{name: a, optional: true}, b]\nthresholds: {latency: 5}\n"
    )
    lines = [
        (
            "pathgauge: r.yaml:1: scenario s: ADK cannot express the criterion latency here, but in"
            " test_config.json"
        ),
        "pathgauge: r.yaml:1: scenario s: ADK cannot express the optional call of a",
    ]
    result = run("export", "r.yaml", "-o", "e.json")
    assert (result.exit_code, result.stdout, (folder / "e.json").exists()) == (2, "", False)
    assert result.stderr.splitlines() == [
        *lines,
        "pathgauge: nothing was written; --lossy leaves out what ADK cannot express",
    ]
    result = run("export", "r.yaml", "--lossy")
    assert (result.exit_code, result.stderr.splitlines()) == (0, lines)
    assert json.loads(result.stdout)["eval_cases"][0]["conversation"][0]["intermediate_data"] == {
        "tool_uses": [{"name": "b"}]
    }


def test_problems_in_the_references_are_reported(run: Run, folder: Path) -> None:
    (folder / "r.yaml").write_text("scenario: 5")
    result = run("export", "r.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("pathgauge: r.yaml:1:11: scenario: found 5, expected text\n")

"""`pathgauge import`: its output, its summary, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from pathgauge.collector.config import reference_files
from support.repository import REFERENCE_FILES

Run = Callable[..., Result]

GOLDEN = REFERENCE_FILES
NAMES = [
    "native.yaml",
    "dialogue.yaml",
    "snake_case.evalset.json",
    "camel_case.test.json",
    "vertex.csv",
    "vertex.jsonl",
    "openai.jsonl",
    "weather.json",
    "graph.json",
    "adk-2.13.evalset.json",
]


def versions(file: Path) -> dict[str, str]:
    return {
        entry.reference.scenario_id: entry.reference.version
        for entry in reference_files.read(file).entries
    }


def test_an_unknown_format_is_refused_with_the_known_ones(run: Run) -> None:
    result = run("import", "vertx", REFERENCE_FILES / "vertex.csv")
    assert result.exit_code == 2
    assert result.stderr == ("pathgauge: no reference format 'vertx'; did you mean 'vertex'?\n")


@pytest.mark.parametrize("name", NAMES)
def test_imported_references_have_the_same_content(name: str, run: Run, folder: Path) -> None:
    result = run("import", "auto", GOLDEN / name, "--output", "refs.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert versions(folder / "refs.yaml") == versions(GOLDEN / name)


def test_references_go_to_standard_output_and_the_summary_to_standard_error(
    run: Run, folder: Path
) -> None:
    (folder / "d.jsonl").write_text(
        '{"id": "a", "prompt": "x", "reference_trajectory": ["t", "t"], "latency": 3}\n'
    )
    (folder / "e.jsonl").write_text(
        '{"prompt": "y", "reference_trajectory": []}\n{"id": "b", "prompt": "z",'
        ' "reference_trajectory": []}\n'
    )
    result = run("import", "vertex", "d.jsonl", "e.jsonl", "--scenario-prefix", "home-")
    assert result.exit_code == 0
    assert (
        result.stdout
        == """\
- scenario: home-a
  input: x
  expected_tools:
    - t
    - t

- scenario: home-row-2bc983a59422
  input: y
  expected_tools: []

- scenario: home-b
  input: z
  expected_tools: []
"""
    )
    assert result.stderr.splitlines() == [
        "pathgauge: d.jsonl: 1 scenario, 1 turn, 2 calls (Vertex AI dataset)",
        "pathgauge: d.jsonl: ignored latency (1)",
        "pathgauge: e.jsonl: 2 scenarios, 2 turns, 0 calls (Vertex AI dataset)",
        (
            "pathgauge: e.jsonl: rows without an id (id, scenario, scenario_id, eval_id, case_id,"
            " example_id): 1, named after a hash of their prompt, such as row-2bc983a59422"
        ),
    ]


def test_every_problem_is_reported_and_nothing_is_written(run: Run, folder: Path) -> None:
    (folder / "a.json").write_text('{"eval_cases": [{"eval_id": "e"}]}')
    (folder / "b.jsonl").write_text(
        '{"id": "a", "reference_trajectory": [{"tool_name": "t", "tool_input": "x"}]}\n'
    )
    (folder / "c.jsonl").write_text(
        '{"prompt": "x", "reference_trajectory": []}\n{"prompt": "x", "reference_trajectory": []}\n'
    )
    result = run("import", "auto", "a.json", "b.jsonl", "c.jsonl", "-o", "refs.yaml")
    assert (result.exit_code, result.stdout, (folder / "refs.yaml").exists()) == (2, "", False)
    assert result.stderr.splitlines() == [
        "pathgauge: a.json:1:17: eval_cases[0].conversation: found nothing, expected this key",
        (
            "pathgauge: b.jsonl:1:71: [0].reference_trajectory[0].tool_input: not JSON: found 'x',"
            " expected a value (character 1 of the text)"
        ),
        (
            "pathgauge: c.jsonl:2:1: [1]: found a row without an id and with the prompt of another"
            " one, expected an id (id, scenario, scenario_id, eval_id, case_id, example_id)"
        ),
    ]


def test_a_scenario_in_two_files_is_refused(run: Run, folder: Path) -> None:
    for name in "ab":
        (folder / f"{name}.yaml").write_text("{scenario: s, input: x}")
    result = run("import", "auto", "a.yaml", "b.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr
        == "pathgauge: b.yaml:1:1: found the scenario 's' again, expected it once (first at"
        " a.yaml:1)\n"
    )


def test_a_file_of_another_format_than_the_one_named_is_refused(run: Run) -> None:
    result = run("import", "adk", GOLDEN / "native.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "expected the key eval_cases (ADK evalset)" in result.stderr


def test_a_folder_that_does_not_exist_is_an_error(run: Run) -> None:
    result = run("import", "auto", GOLDEN / "native.yaml", "--output", "nowhere/refs.yaml")
    assert (result.exit_code, result.stderr) == (
        2,
        "pathgauge: nowhere/refs.yaml: No such file or directory\n",
    )

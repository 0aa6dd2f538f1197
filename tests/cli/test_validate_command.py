"""`pathgauge validate` reports every problem of the configuration and of the files it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from support.repository import ROOT

Run = Callable[..., Result]

EXAMPLE = ROOT / "examples" / "pathgauge.yaml"


def test_the_defaults_are_valid(run: Run) -> None:
    result = run("validate")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "defaults: ok, references: 0, criteria: failure, latency, exporters: prometheus\n",
        "",
    )


def test_the_example_is_valid(run: Run) -> None:
    result = run("validate", "--config", EXAMPLE)
    criteria = (
        "tool_trajectory_avg_score, tool_trajectory_f1, tools_in_any_order, response_match_score,"
        " latency, failure"
    )
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        f"{EXAMPLE}: ok, references: 3, criteria: {criteria}, exporters: prometheus\n",
        "",
    )


def test_all_problems_of_a_configuration_are_listed_in_order(run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text(
        "assembly: {settle: soon}\n"
        "criteria:\n"
        "  tool_trajectry_f1: 0.8\n"
        "  response_match_score: {threshold: 2}\n"
        "windows: {sise: 10}\n"
        "receivers: {otlp: {protocols: {grpc: {endpoint: nowhere}}}}\n"
    )
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    places, problems = zip(
        *(line.split(": ", 2)[1:] for line in result.stderr.splitlines()), strict=True
    )
    assert places == (
        "pathgauge.yaml:1:20",
        "pathgauge.yaml:3:3",
        "pathgauge.yaml:4:37",
        "pathgauge.yaml:5:11",
        "pathgauge.yaml:6:49",
    )
    assert [problem.split(":")[0] for problem in problems] == [
        "assembly.settle",
        "criteria.tool_trajectry_f1",
        "criteria.response_match_score.threshold",
        "windows.sise",
        "receivers.otlp.protocols.grpc.endpoint",
    ]
    assert all(line.startswith("pathgauge: ") for line in result.stderr.splitlines())


def test_problems_in_several_reference_files_are_listed_together(run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text('references: ["references/*.yaml"]\n')
    (folder / "references").mkdir()
    (folder / "references" / "a.yaml").write_text("scenario: a\nexpected_tool: [t]\n")
    (folder / "references" / "b.yaml").write_text("scenario: b\nexpected_tools: [{nam: t}]\n")
    (folder / "references" / "c.yaml").write_text("scenario: c\nexpected_response: fine\n")
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == [
        "references/a.yaml:2:1",
        "references/b.yaml:2:18",
        "references/b.yaml:2:19",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "pathgauge.yaml:2:1: "),
        ("criteria: {a: 1, a: 2}", "pathgauge.yaml:1:18: "),
        ("store: {path: 3}", "pathgauge.yaml:1:15: store.path: found 3, expected text"),
        (
            "exporters: {prometheus: {endpoint: '${env:NOT_SET_ANYWHERE}:9464'}}",
            "pathgauge.yaml:1:36: ",
        ),
    ],
)
def test_a_syntax_or_type_error_is_reported_with_its_position(
    text: str, problem: str, run: Run, folder: Path
) -> None:
    (folder / "pathgauge.yaml").write_text(text + "\n")
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"pathgauge: {problem}")


def test_settings_that_are_probably_unintended_cause_warnings(run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text(
        'references: ["references/*.yaml"]\ncriteria: {tool_trajectory_avg_score: 1.0}\n'
    )
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stdout) == (
        0,
        "pathgauge.yaml: ok, references: 0, criteria: tool_trajectory_avg_score,"
        " exporters: prometheus\n",
    )
    assert result.stderr.splitlines() == [
        "pathgauge: no file matches the references 'references/*.yaml' in .",
        "pathgauge: there are no references, which these criteria need: tool_trajectory_avg_score",
    ]


def test_a_folder_instead_of_the_file_is_an_error(run: Run, folder: Path) -> None:
    result = run("validate", "-c", folder)
    assert (result.exit_code, result.stderr) == (
        2,
        f"pathgauge: {folder}: cannot be read: Is a directory\n",
    )

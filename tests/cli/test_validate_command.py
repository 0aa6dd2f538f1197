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


def test_a_configuration_without_its_option_is_refused_with_the_option(run: Run) -> None:
    for command in ("validate", "serve"):
        result = run(command, "pathgauge.yaml")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith(
            "found the argument 'pathgauge.yaml', expected none;"
            " did you mean --config pathgauge.yaml?\n"
        )


def test_another_argument_is_refused_without_a_guess(run: Run) -> None:
    for arguments in (("validate", "now"), ("scorers", "pathgauge.yaml")):
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr.endswith(f"found the argument {arguments[1]!r}, expected none\n")


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
        "pathgauge: pathgauge.yaml:1:14: references[0]: no file matches the references"
        " 'references/*.yaml' in .",
        "pathgauge: there are no references, which these criteria need: tool_trajectory_avg_score",
    ]


def test_a_folder_instead_of_the_file_is_an_error(run: Run, folder: Path) -> None:
    result = run("validate", "-c", folder)
    assert (result.exit_code, result.stderr) == (
        2,
        f"pathgauge: {folder}: cannot be read: Is a directory\n",
    )


def test_problems_of_the_configuration_and_of_the_references_are_listed_together(
    run: Run, folder: Path
) -> None:
    (folder / "pathgauge.yaml").write_text(
        "assembly: {settle: soon}\n"
        "criteria_file: no.json\n"
        "references:\n"
        "  - a.yaml\n"
        "  - missing.yaml\n"
        "  - folder\n"
    )
    (folder / "folder").mkdir()
    (folder / "a.yaml").write_text("scenario: a\nexpected_tool: [t]\n")
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    lines = [line.removeprefix("pathgauge: ") for line in result.stderr.splitlines()]
    assert lines[0].startswith("a.yaml:2:1: expected_tool: found an unknown key")
    assert lines[1:] == [
        "pathgauge.yaml:1:20: assembly.settle: found 'soon', expected a duration such as 6s, 10m or"
        " 1h30m",
        "pathgauge.yaml:2:16: criteria_file: found no such file: no.json",
        "pathgauge.yaml:5:5: references[1]: found no such file: missing.yaml",
        "pathgauge.yaml:6:5: references[2]: found a folder: folder, expected a file or a pattern"
        " such as folder/*.yaml",
    ]


def test_problems_of_references_overrides_models_and_servers_are_listed_together(
    run: Run, folder: Path
) -> None:
    (folder / "pathgauge.yaml").write_text(
        "references: [a.yaml, b.yaml]\n"
        "receivers: {otlp: {protocols: {grpc: {endpoint: '0.0.0.0:4317'}}}}\n"
        "judge: {model: 'local:m', providers: {local: {base_url: 'http://127.0.0.1:1/v1',"
        " allow_private: true}}}\n"
        "criteria: {safety_v1: {threshold: 1, model: 'openai:m'}}\n"
    )
    (folder / "a.yaml").write_text("scenario: a\nexpected_tool: [t]\n")
    (folder / "b.yaml").write_text("scenario: b\ninput: x\nthresholds: {latencyy: 1}\n")
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    places = [line.split(": ")[1:3] for line in result.stderr.splitlines()]
    assert places == [
        ["a.yaml:2:1", "expected_tool"],
        ["b.yaml:3:14", "criteria.latencyy"],
        ["pathgauge.yaml:2:49", "receivers.otlp.protocols.grpc.endpoint"],
        ["pathgauge.yaml:4:23", "criteria.safety_v1"],
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_configuration_gets_a_hint(text: str, run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text(text)
    result = run("validate", "-c", "pathgauge.yaml")
    assert result.exit_code == 0
    hint = result.stderr.splitlines()[0]
    assert "found an empty file, so every key has its default; a small configuration is" in hint
    (folder / "references").mkdir()
    (folder / "references" / "a.yaml").write_text("scenario: a\nexpected_tools: [t]\n")
    (folder / "pathgauge.yaml").write_text(hint.partition("configuration is ")[2])
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "ok, references: 1, criteria: tool_trajectory_f1," in result.stdout


def test_a_missing_file_of_the_command_line_is_not_located_in_the_configuration(
    run: Run, folder: Path
) -> None:
    (folder / "pathgauge.yaml").write_text("references: [a.yaml]\n")
    (folder / "traces.json").write_text("{}")
    result = run("score", "traces.json", "-c", "pathgauge.yaml", "-r", "missing.yaml")
    assert result.exit_code == 2
    assert result.stderr.endswith("missing.yaml: found no such file\n")


def test_cases_with_a_simulated_user_cause_a_warning(run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text("references: [a.evalset.json]\n")
    (folder / "a.evalset.json").write_text(
        '{"eval_cases": [{"eval_id": "a", "conversation": [{"user_content": {}}]},'
        ' {"eval_id": "b", "conversation_scenario": {"starting_prompt": "Hi"}}]}'
    )
    result = run("validate", "-c", "pathgauge.yaml")
    assert (result.exit_code, result.stderr) == (
        0,
        "pathgauge: a.evalset.json: cases with a simulated user, left out because they have no"
        " conversation to compare with: 1 (b)\n",
    )
    assert ": ok, references: 1, " in result.stdout

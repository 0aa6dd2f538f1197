"""`pathgauge record`: traces pass with the references that were recorded from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from support.repository import CAPTURES
from support.turns import otlp, script, turn

Run = Callable[..., Result]

CRITERIA = {
    "tool_trajectory_avg_score": 1.0,
    "tool_trajectory_f1": {"threshold": 1.0, "match_mode": "name_and_args"},
    "trajectory_exact_match": 1.0,
    "response_match_score": 1.0,
}


def suitable(file: Path) -> bool:
    """Whether a capture has scenarios, each run once and without failure."""
    invocations = json.loads(file.read_text())
    runs = [(one["scenario_id"], one["conversation_id"]) for one in invocations]
    once = {scenario for scenario, _ in runs} and len({scenario for scenario, _ in runs}) == len(
        set(runs)
    )
    alone = len(set(runs)) == len(runs) or all(conversation for _, conversation in runs)
    return (
        bool(once)
        and alone
        and all(scenario for scenario, _ in runs)
        and not any(one["error"] for one in invocations)
    )


FRAMEWORKS = sorted(
    {file.parent.parent for file in CAPTURES.glob("*/*/invocations.json") if suitable(file)}
)
CASES = [
    case.relative_to(CAPTURES).as_posix()
    for framework in FRAMEWORKS
    for case in sorted(
        file.parent for file in framework.glob("*/invocations.json") if suitable(file)
    )[:4]
]


def results(result: Result) -> list[dict[str, Any]]:
    return [
        scored
        for line in result.stdout.split("\n")[:-1]  # a text may have other ends of lines
        for scored in json.loads(line).get("results", {}).values()
    ]


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("case", CASES)
def test_a_capture_meets_the_references_recorded_from_it(case: str, run: Run, folder: Path) -> None:
    (folder / "test_config.json").write_text(json.dumps({"criteria": CRITERIA}))
    recorded = run("record", CAPTURES / case, "--output", "refs.yaml")
    assert (recorded.exit_code, recorded.stdout) == (0, "")
    scored = run(
        "score", CAPTURES / case, "-r", "refs.yaml", "--criteria", "test_config.json", "--json"
    )
    assert [one for one in results(scored) if one["score"] not in (1.0, None)] == []
    assert len(results(scored)) >= len(CRITERIA)
    assert {one["reason"] for one in results(scored)} <= {
        None,
        "args_not_recorded",
        "response_not_recorded",
        "no_reference",
    }


def test_captures_of_many_frameworks_are_recorded() -> None:
    assert len(FRAMEWORKS) > 8


def write(folder: Path, *turns: Any, name: str = "traces.bin") -> None:
    (folder / name).write_bytes(otlp(*turns))


def test_the_references_are_printed_and_the_notes_go_to_standard_error(
    run: Run, folder: Path
) -> None:
    write(
        folder,
        turn(script("refund", "lookup", "refund")),
        turn(script("", "x"), conversation="other"),
    )
    result = run("record", "traces.bin")
    assert (result.exit_code, result.stdout) == (
        0,
        """\
scenario: refund
input: Please do it.
expected_tools:
  - {name: lookup, args: {}}
  - {name: refund, args: {}}
expected_response: It is done.
""",
    )
    assert (
        result.stderr
        == "pathgauge: traces.bin: invocations skipped because they lack a unique scenario id: 1;"
        " --scenario gives them one\n"
    )


def test_the_options_say_what_is_recorded(run: Run, folder: Path) -> None:
    write(folder, turn(script("", "a"), conversation="1"), turn(script("", "b"), conversation="2"))
    result = run(
        "record",
        "traces.bin",
        "--scenario",
        "s",
        "--without-arguments",
        "--without-response",
        "--alternatives",
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == "scenario: s\ninput: Please do it.\nexpected_tools:\n  - a\nalternatives:\n  - [b]\n"
    )


def test_a_failed_invocation_is_an_error_unless_allowed(run: Run) -> None:
    capture = CAPTURES / "openai-otelv2-manual" / "S3b"
    result = run("record", capture, "-o", "refs.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith(
        f"pathgauge: {capture}: scenario currency-tool-crash: found a failed invocation"
    )
    assert run("record", capture, "--allow-failed").stdout.startswith(
        "scenario: currency-tool-crash\n"
    )


def test_traces_without_a_scenario_are_an_error(run: Run, folder: Path) -> None:
    write(folder, turn(script("", "a")))
    result = run("record", "traces.bin")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr
        == "pathgauge: traces.bin: found no invocation with a scenario id, expected one;"
        " --scenario gives all of them one\n"
    )


def test_with_a_scenario_there_must_be_an_invocation_and_it_needs_a_name(
    run: Run, folder: Path
) -> None:
    (folder / "empty.json").write_text('{"resourceSpans": []}')
    none = run("record", "empty.json", "--scenario", "refund")
    assert (none.exit_code, none.stderr.splitlines()[-1]) == (
        2,
        "pathgauge: empty.json: found no invocation, expected one",
    )
    unnamed = run("record", "empty.json", "--scenario", "")
    assert unnamed.exit_code == 2
    assert "--scenario: found '', expected a scenario id" in unnamed.stderr


def test_scenario_keys_come_from_the_configuration(run: Run, folder: Path) -> None:
    write(folder, turn(script("refund", "a")))
    (folder / "pathgauge.yaml").write_text("scenario: {keys: [other.key]}")
    assert run("record", "traces.bin", "--config", "pathgauge.yaml").exit_code == 2


def test_a_reference_file_is_replaced_only_with_force(run: Run, folder: Path) -> None:
    capture = CAPTURES / CASES[0]
    target = folder / "edited.yaml"
    target.write_text("by hand")
    refused = run("record", capture, "--output", "edited.yaml")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "pathgauge: edited.yaml: found a file, expected none, or --force to replace it\n",
    )
    assert target.read_text() == "by hand"
    assert run("record", capture, "--output", "edited.yaml", "--force").exit_code == 0
    assert "expected_tools" in target.read_text()

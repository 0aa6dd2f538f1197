"""`pathgauge score` with criteria over an agent or a suite, and its overall lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import Result

from support.turns import otlp, script, turn

Run = Callable[..., Result]

SCENARIOS = ("refund", "greet")
ROUTING = {"scorer": "tool_trajectory_avg_score", "over": "agent", "threshold": 0.9}


def write(folder: Path, right: int, wrong: int, criteria: dict[str, Any]) -> None:
    """`right` and `wrong` runs, over two scenarios in turn."""
    references = [{"scenario": one, "expected_tools": ["lookup"]} for one in SCENARIOS]
    (folder / "references.yaml").write_text(yaml.safe_dump(references))
    (folder / "test_config.json").write_text(json.dumps({"criteria": criteria}))
    tools = ["lookup"] * right + ["other"] * wrong
    turns = [
        turn(script(SCENARIOS[i % 2], tool), conversation=str(i)) for i, tool in enumerate(tools)
    ]
    (folder / "traces.bin").write_bytes(otlp(*turns))


def score(run: Run, *arguments: str) -> Result:
    return run(
        *("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json"),
        *arguments,
    )


def test_19_of_20_right_routings_pass_09(run: Run, folder: Path) -> None:
    write(folder, 19, 1, {"routing": ROUTING})
    result = score(run)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [line.split("\t") for line in result.stdout.splitlines()[1:]]
    assert rows == [
        ["my_agent", "greet", "routing", "0.900", "", "0.900", "10", "10", "informational", ""],
        ["my_agent", "refund", "routing", "1.000", "", "0.900", "10", "10", "informational", ""],
        ["my_agent", "*", "routing", "0.950", "0.224", "0.900", "20", "20", "passed", ""],
        ["*", "*", "routing", "0.950", "0.224", "", "20", "20", "", ""],
    ]


def test_17_of_20_right_routings_fail_09_with_their_interval(run: Run, folder: Path) -> None:
    write(folder, 17, 3, {"routing": ROUTING})
    result = score(run)
    assert (result.exit_code, result.stderr.splitlines()) == (
        1,
        [
            "routing for my_agent Failed. Expected 0.9, but got 0.85 over 20 scores"
            " (95 % interval 0.64 to 0.948)."
        ],
    )


@pytest.mark.parametrize(("escalated", "status"), [(2, 0), (4, 1)])
def test_2_of_20_escalations_pass_a_limit_of_15_percent(
    escalated: int, status: int, run: Run, folder: Path
) -> None:
    limit = {"scorer": "escalation_rate", "escalation_tool": "other", "over": "agent"}
    write(folder, 20 - escalated, escalated, {"escalations": {**limit, "threshold": 0.15}})
    assert score(run).exit_code == status


@pytest.mark.parametrize("over", ["scenario", "agent", "suite"])
@pytest.mark.parametrize("measure", [{}, {"aggregate": "share"}, {"aggregate": "pass^k", "k": 2}])
def test_failed_shows_the_invocations_that_pull_an_aggregate_down(
    over: str, measure: dict[str, Any], run: Run, folder: Path
) -> None:
    write(folder, 16, 4, {"routing": {**ROUTING, "over": over, **measure}})
    shown = score(run, "--json", "--failed").stdout.splitlines()
    scores = [json.loads(line)["results"]["routing"]["score"] for line in shown[:-1]]
    assert scores == [0.0] * 4


def test_failed_shows_nothing_of_an_aggregate_that_passes(run: Run, folder: Path) -> None:
    write(folder, 19, 1, {"routing": ROUTING})
    (verdict,) = score(run, "--json", "--failed").stdout.splitlines()
    assert json.loads(verdict)["gate"]["passed"]


def test_a_suite_can_ask_for_repeated_success(run: Run, folder: Path) -> None:
    criterion = {**ROUTING, "over": "suite", "aggregate": "pass^k", "k": 2, "threshold": 0.95}
    write(folder, 7, 1, {"reliable": criterion})
    result = score(run, "--json")
    gate = json.loads(result.stdout.splitlines()[-1])["gate"]
    (aggregate,) = gate["aggregates"]
    assert result.exit_code == 1
    assert aggregate == {
        "over": "suite",
        "aggregate": "pass^k",
        "agent": None,
        "scenario": None,
        "criterion": "reliable",
        "verdict": "failed",
        "score": 0.75,
        "confidence_low": aggregate["confidence_low"],
        "confidence_high": aggregate["confidence_high"],
        "threshold": 0.95,
        "scored": 8,
    }
    assert aggregate["confidence_low"] < 0.75 < aggregate["confidence_high"]
    assert gate["overall"] == [
        {"metric": "reliable", "mean": 0.875, "deviation": pytest.approx(0.3536, abs=1e-4)}
        | {"samples": 8}
    ]
    assert gate["reasons"][0].startswith("reliable for all agents Failed. Expected 0.95, but got")


def test_a_scenario_with_too_few_runs_gives_no_verdict_and_the_gate_does_not_pass(
    run: Run, folder: Path
) -> None:
    criterion = {**ROUTING, "over": "scenario", "aggregate": "pass@k", "k": 5}
    write(folder, 4, 0, {"possible": criterion})
    result = score(run)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "Coverage 0, expected 1: possible scored 0 of 4 invocations (4 too_few_runs).",
        "Nothing was compared with a threshold, so the gate does not pass.",
    ]


def test_junit_has_a_test_case_for_each_aggregate(run: Run, folder: Path) -> None:
    write(folder, 17, 3, {"routing": ROUTING})
    score(run, "--junit", "report.xml")
    suite = ElementTree.parse(folder / "report.xml").find("testsuite")
    assert suite is not None
    cases = [case for case in suite if case.get("classname") == "over my_agent"]
    assert [case.get("name") for case in cases] == ["routing"]
    (failure,) = cases[0].findall("failure")
    assert (failure.get("message") or "").startswith("routing for my_agent Failed.")
    properties = {
        one.get("name"): one.get("value") for one in cases[0].findall("properties/property")
    }
    assert properties == {
        "over": "agent",
        "aggregate": "mean",
        "threshold": "0.9",
        "score": "0.85",
        "confidence_low": "0.639581",
        "confidence_high": "0.947631",
        "scored": "20",
    }


def test_the_deviation_over_all_scores_is_shown_for_several_scenarios_only(
    run: Run, folder: Path
) -> None:
    write(folder, 1, 0, {"tool_trajectory_avg_score": 1.0})
    assert "*" not in score(run).stdout
    write(folder, 2, 1, {"tool_trajectory_avg_score": 0.1})
    assert score(run).stdout.splitlines()[-1] == (
        "*\t*\ttool_trajectory_avg_score\t0.667\t0.577\t\t3\t3\t\t"
    )


def test_a_scenario_with_too_few_runs_is_not_left_out_silently(run: Run, folder: Path) -> None:
    criterion = {**ROUTING, "over": "suite", "aggregate": "pass^k", "k": 3}
    write(folder, 5, 0, {"reliable": criterion})
    result = score(run)
    assert (result.exit_code, result.stderr.splitlines()) == (
        1,
        ["Coverage 0.6, expected 1: reliable scored 3 of 5 invocations (2 too_few_runs)."],
    )


def test_runs_whose_scenario_is_found_by_their_prompt_are_those_of_their_scenarios(
    run: Run, folder: Path
) -> None:
    references = [
        {"scenario": one, "input": f"{one}, please", "expected_tools": ["lookup"]}
        for one in ("refund", "greet", "cancel")
    ]
    rows = [
        {"prompt": f"{one}, please", "predicted_trajectory": ["lookup"]}
        for one in ("refund", "refund", "refund", "greet", "cancel")
    ]
    criterion = {**ROUTING, "over": "suite", "aggregate": "pass^k", "k": 2}
    (folder / "references.yaml").write_text(yaml.safe_dump(references))
    (folder / "test_config.json").write_text(json.dumps({"criteria": {"reliable": criterion}}))
    (folder / "traces.bin").write_text("\n".join(map(json.dumps, rows)))
    result = score(run)
    assert (result.exit_code, result.stderr.splitlines()) == (
        1,
        ["Coverage 0.6, expected 1: reliable scored 3 of 5 invocations (2 too_few_runs)."],
    )


@pytest.mark.parametrize("scenario", ["", "unknown"])
def test_runs_without_a_known_scenario_do_not_fail_a_gate_about_repeated_runs(
    scenario: str, run: Run, folder: Path
) -> None:
    criterion = {"scorer": "tool_loops", "over": "suite", "aggregate": "pass^k", "k": 2}
    write(folder, 4, 0, {"no_loops": {**criterion, "threshold": 1}})
    calls = [script(one, "lookup") for one in (*SCENARIOS, *SCENARIOS, scenario)]
    turns = [turn(one, conversation=str(number)) for number, one in enumerate(calls)]
    (folder / "traces.bin").write_bytes(otlp(*turns))
    result = score(run, "--json")
    gate = json.loads(result.stdout.splitlines()[-1])["gate"]
    assert (result.exit_code, gate["reasons"]) == (0, [])
    assert gate["coverage"]["no_loops"] == {
        "share": 1.0,
        "invocations": 4,
        "scored": 4,
        "not_scored": {},
    }


def test_invocations_that_belong_to_no_session_are_named(run: Run, folder: Path) -> None:
    write(folder, 2, 0, {"routing": ROUTING, "session_turns": 5})
    assert score(run).stderr == ""
    turns = [turn(script("refund", "lookup"), conversation=name) for name in ("", "a", "a")]
    (folder / "traces.bin").write_bytes(otlp(*turns))
    result = score(run)
    assert (result.exit_code, result.stderr) == (
        0,
        "pathgauge: No conversation id of 1 of 3 invocations, needed by session_turns.\n"
        "pathgauge: scenarios with a reference, but without an invocation: greet\n",
    )


def test_a_missing_turn_is_a_run_that_has_failed(run: Run, folder: Path) -> None:
    turns = [{"expected_tools": ["lookup"]}] * 3
    (folder / "references.yaml").write_text(yaml.safe_dump({"scenario": "talk", "turns": turns}))
    criterion = {**ROUTING, "over": "scenario", "aggregate": "pass@k", "k": 3}
    (folder / "test_config.json").write_text(json.dumps({"criteria": {"possible": criterion}}))
    calls = [turn(script("talk", "lookup"), conversation="1") for _ in range(2)]
    (folder / "traces.bin").write_bytes(otlp(*calls))
    result = score(run, "--json")
    gate = json.loads(result.stdout.splitlines()[-1])["gate"]
    assert [one["scored"] for one in gate["aggregates"]] == [3]
    assert (result.exit_code, gate["reasons"]) == (0, [])

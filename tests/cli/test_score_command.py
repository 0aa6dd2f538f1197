"""`pathgauge score` as a gate: exit status, messages about failures, and JSON and XML reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import Result

from pathgauge.scorers.types import Invocation, ReferenceTurn, Score
from support.turns import otlp, script, turn

Run = Callable[..., Result]

SAME, OTHER = [f"word{n}" for n in range(13)], [f"other{n}" for n in range(7)]
EXPECTED_ANSWER = " ".join([*SAME, *(f"more{n}" for n in range(7))])
HALF_RIGHT_ANSWER = " ".join([*SAME, *OTHER])
"""Thirteen of twenty words: a ROUGE-1 of 0.65."""

REFERENCE = {
    "scenario": "refund",
    "expected_tools": ["lookup", "refund"],
    "expected_response": EXPECTED_ANSWER,
}

RIGHT = script("refund", "lookup", "refund", answer=EXPECTED_ANSWER)
VAGUE = script("refund", "lookup", "refund", answer=HALF_RIGHT_ANSWER)
WRONG = script("refund", "refund", answer=EXPECTED_ANSWER)


@dataclass(frozen=True)
class Broken:
    """A scorer that fails."""

    name: ClassVar[str] = "broken"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        raise RuntimeError("out of luck")


@pytest.fixture(autouse=True)
def references(folder: Path) -> None:
    (folder / "references.yaml").write_text(yaml.safe_dump(REFERENCE))


def write(folder: Path, *turns: Any, name: str = "traces.bin") -> None:
    (folder / name).write_bytes(otlp(*turns))


def criteria(folder: Path, **written: object) -> None:
    (folder / "test_config.json").write_text(json.dumps({"criteria": written}))


def test_a_run_that_meets_every_threshold_passes_quietly(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT), turn(RIGHT))
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [
        line.split() for line in result.stdout.splitlines() if line.strip() and line.strip(" ─")
    ] == [
        ["agent,", "scenario,", "criterion", "score", "threshold", "judged", "verdict"],
        ["my_agent", "refund"],
        ["response_match_score", "1.000", "0.800", "2", "passed"],
        ["tool_trajectory_avg_score", "1.000", "1.000", "2", "passed"],
    ]


def test_a_missed_threshold_is_reported_in_the_wording_of_adk(run: Run, folder: Path) -> None:
    write(folder, turn(VAGUE))
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert result.exit_code == 1
    line, *reasons = result.stderr.splitlines()
    assert line == "response_match_score for my_agent Failed. Expected 0.8, but got 0.65. [refund]"
    assert [reason.startswith("    ") for reason in reasons] == [True]


def test_scores_are_means_over_invocations(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT), turn(WRONG), turn(RIGHT))
    criteria(folder, tool_trajectory_avg_score=0.7)
    result = run("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json")
    assert result.exit_code == 1
    assert (
        result.stderr.splitlines()[0]
        == "tool_trajectory_avg_score for my_agent Failed. Expected 0.7, but got 0.666667. [refund]"
    )


def test_details_show_both_trajectories_side_by_side(run: Run, folder: Path) -> None:
    write(folder, turn(script("refund", "search", "refund", "mail", answer=EXPECTED_ANSWER)))
    result = run("score", "traces.bin", "-r", "references.yaml", "--details")
    told = result.stdout.partition("agent, scenario, criterion")[0]
    lines = [" ".join(line.split()) for line in told.splitlines() if line.strip(" ─")]
    assert lines[0].startswith("my_agent refund trace ")
    assert lines[1:] == [
        (
            "tool_trajectory_avg_score 0.000 failed: 1 of 2 expected calls matched; missing lookup;"
            " unexpected search, mail"
        ),
        "response_match_score 1.000 passed: precision 1.00 of 20 tokens, recall 1.00 of 20 tokens",
        "tool_trajectory_avg_score",
        "expected actual",
        "+ search()",
        "lookup -",
        "refund = refund()",
        "+ mail()",
    ]


def test_each_agent_is_judged_separately_and_over_all_files(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT, agent="good"), turn(WRONG, agent="bad"), name="a.bin")
    write(folder, turn(RIGHT, agent="bad"), name="b.bin")
    criteria(folder, tool_trajectory_avg_score=0.6)
    result = run(
        "score", "a.bin", "b.bin", "-r", "references.yaml", "--criteria", "test_config.json"
    )
    assert result.exit_code == 1
    assert [line for line in result.stderr.splitlines() if not line.startswith(" ")] == [
        "tool_trajectory_avg_score for bad Failed. Expected 0.6, but got 0.5. [refund]"
    ]


def test_references_and_criteria_come_from_the_configuration(run: Run, folder: Path) -> None:
    write(folder, turn(WRONG))
    (folder / "conf").mkdir()
    (folder / "references.yaml").rename(folder / "conf" / "references.yaml")
    (folder / "conf" / "pathgauge.yaml").write_text(
        "references: [references.yaml]\ncriteria: {tool_trajectory_f1: 0.6}\n"
    )
    result = run("score", "traces.bin", "-c", "conf/pathgauge.yaml")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_gate_that_judged_nothing_fails_and_says_why(run: Run, folder: Path) -> None:
    write(
        folder,
        turn(script("unheard-of", "lookup")),
        turn(script("", "lookup")),
        turn(script("", "lookup")),
    )
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "pathgauge: scenarios with a reference, but without a run: refund",
        "2 x no reference: no scenario id",
        "1 x no reference: unknown scenario 'unheard-of'",
        "Nothing was compared with a threshold, so the gate does not pass.",
    ]


def test_without_references_the_gate_says_what_is_missing(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT))
    result = run("score", "traces.bin")
    assert result.exit_code == 1
    assert (
        result.stderr.splitlines()[0]
        == "pathgauge: there are no references, which these criteria need:"
        " tool_trajectory_avg_score, response_match_score"
    )


def test_criteria_without_a_threshold_do_not_make_a_gate(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT))
    (folder / "pathgauge.yaml").write_text("criteria: {latency: , failure: }\n")
    result = run("score", "traces.bin", "-c", "pathgauge.yaml")
    assert result.exit_code == 1
    assert (
        result.stderr.splitlines()[-1]
        == "Nothing was compared with a threshold, so the gate does not pass."
    )


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_a_scorer_that_raises_fails_the_gate_and_shows_the_error(
    threshold: float | None, run: Run, folder: Path
) -> None:
    write(folder, turn(RIGHT))
    criteria(folder, broken={"scorer": f"{__name__}:Broken", "threshold": threshold}, failure=0.5)
    result = run("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "broken for my_agent Error. No score could be given. [refund]",
        "    RuntimeError: out of luck",
    ]


def test_an_agent_without_a_name_is_shown_as_such(run: Run, folder: Path) -> None:
    write(folder, turn(WRONG, agent="", resource="service"))
    criteria(folder, tool_trajectory_avg_score=1.0)
    result = run("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json")
    assert result.stderr.splitlines()[0].startswith(
        "tool_trajectory_avg_score for (no name) Failed."
    )


@pytest.mark.parametrize("name", ["[/red]", "[red]", "a[0]", "\x1b[2J", "\x00", "new\nline", "🤖"])
def test_names_from_telemetry_cannot_control_the_terminal(
    name: str, run: Run, folder: Path
) -> None:
    write(folder, turn(WRONG, agent=name))
    result = run("score", "traces.bin", "-r", "references.yaml", "--junit", "report.xml")
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)
    assert result.exit_code == 1
    assert f"{shown} refund" in result.stdout
    assert f"tool_trajectory_avg_score for {shown} Failed." in result.stderr
    assert ElementTree.parse(folder / "report.xml").getroot().tag == "testsuites"


def test_json_has_every_invocation_and_failures_go_to_standard_error(
    run: Run, folder: Path
) -> None:
    write(folder, turn(RIGHT), turn(WRONG))
    result = run("score", "traces.bin", "-r", "references.yaml", "--json")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [
        (one["source"], one["reference"]["scenario_id"], one["reference"]["turn"])
        for one in objects
    ] == [("traces.bin", "refund", 0)] * 2
    assert [
        {name: (of["score"], of["verdict"], of["threshold"]) for name, of in one["results"].items()}
        for one in objects
    ] == [
        {
            "tool_trajectory_avg_score": (1.0, "passed", 1.0),
            "response_match_score": (1.0, "passed", 0.8),
        },
        {
            "tool_trajectory_avg_score": (0.0, "failed", 1.0),
            "response_match_score": (1.0, "passed", 0.8),
        },
    ]
    assert (
        "tool_trajectory_avg_score for my_agent Failed. Expected 1, but got 0.5. [refund]"
        in result.stderr
    )


def test_junit_has_one_case_for_each_agent_scenario_and_criterion(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT, agent="good"), turn(VAGUE, agent="bad"))
    result = run("score", "traces.bin", "-r", "references.yaml", "--junit", "report.xml")
    assert result.exit_code == 1
    [suite] = ElementTree.parse(folder / "report.xml").getroot()
    assert suite.attrib == {
        "name": "pathgauge",
        "tests": "4",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    assert [
        (case.get("classname"), case.get("name"), [child.tag for child in case]) for case in suite
    ] == [
        ("bad.refund", "response_match_score", ["failure"]),
        ("bad.refund", "tool_trajectory_avg_score", []),
        ("good.refund", "response_match_score", []),
        ("good.refund", "tool_trajectory_avg_score", []),
    ]
    assert (
        suite[0][0].get("message")
        == "response_match_score for bad Failed. Expected 0.8, but got 0.65. [refund]"
    )


def test_junit_shows_that_nothing_was_judged(run: Run, folder: Path) -> None:
    write(folder, turn(script("", "lookup")))
    run("score", "traces.bin", "-r", "references.yaml", "--junit", "report.xml")
    [suite] = ElementTree.parse(folder / "report.xml").getroot()
    assert suite.attrib == {
        "name": "pathgauge",
        "tests": "1",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    assert [(case.get("classname"), case.get("name"), case[0].tag) for case in suite] == [
        ("pathgauge", "gate", "failure")
    ]


MISTAKES = {
    "a reference file that does not exist": (
        ("-r", "nowhere.yaml"),
        "nowhere.yaml: found no such file",
    ),
    "a criterion that does not exist": (
        ("--criteria", "typo.json"),
        (
            "typo.json:1:15: criteria.tool_trajectry_f1: no scorer 'tool_trajectry_f1'; did you"
            " mean 'tool_trajectory_f1'?"
        ),
    ),
    "a report that cannot be written": (
        ("-r", "references.yaml", "--junit", "no/folder.xml"),
        "no/folder.xml: No such file or directory",
    ),
    "a configuration that does not exist": (
        ("-c", "nowhere.yaml"),
        "nowhere.yaml: cannot be read: No such file or directory",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_errors_of_the_operator_are_one_line_and_status_2(
    name: str, run: Run, folder: Path
) -> None:
    arguments, problem = MISTAKES[name]
    write(folder, turn(RIGHT))
    (folder / "typo.json").write_text('{"criteria": {"tool_trajectry_f1": 1}}')
    result = run("score", "traces.bin", *arguments)
    assert (result.exit_code, result.stderr) == (2, f"pathgauge: {problem}\n")


def test_many_unknown_scenarios_are_summed_up(run: Run, folder: Path) -> None:
    write(folder, *(turn(script(scenario)) for scenario in ("a", "b", "a", "c", "d", "e")))
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert result.stderr.splitlines()[1:5] == [
        "2 x no reference: unknown scenario 'a'",
        "1 x no reference: unknown scenario 'b'",
        "1 x no reference: unknown scenario 'c'",
        "and 2 more scenarios without reference",
    ]


def test_the_table_shows_how_many_invocations_were_judged(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT), turn(script("refund", "lookup", "refund", answer="")))
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert "1 of 2" in result.stdout


def test_missing_turns_of_a_conversation_count_as_0(run: Run, folder: Path) -> None:
    turns = [{"expected_tools": ["search"]}, {"expected_tools": ["book"]}]
    (folder / "references.yaml").write_text(yaml.safe_dump({"scenario": "trip", "turns": turns}))
    criteria(folder, tool_trajectory_avg_score=1.0)
    arguments = ("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json")
    write(folder, turn(script("trip", "search")), turn(script("trip", "book")))
    assert run(*arguments).exit_code == 0
    write(folder, turn(script("trip", "search")))
    result = run(*arguments)
    assert (result.exit_code, result.stderr.splitlines()) == (
        1,
        [
            "tool_trajectory_avg_score for my_agent Failed. Expected 1, but got 0.5. [trip]",
            "    1 missing or unexpected turns count as 0",
        ],
    )

"""`pathgauge score` as a gate: exit status, messages about failures, and JSON and XML reports."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner, Result

from pathgauge.collector.cli import app
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score
from support.turns import otlp, script, trace_id, turn

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


@dataclass(frozen=True)
class Misreads(Broken):
    """A scorer that fails in a library."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(json.loads("half"))


@dataclass(frozen=True)
class Exits(Broken):
    """A scorer that would end the process, as if all was well."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        sys.exit(0)


@pytest.fixture(autouse=True)
def references(folder: Path) -> None:
    (folder / "references.yaml").write_text(yaml.safe_dump(REFERENCE))


def write(folder: Path, *turns: Any, name: str = "traces.bin") -> None:
    (folder / name).write_bytes(otlp(*turns))


COLUMNS = [
    *("agent", "scenario", "criterion", "score", "deviation", "threshold"),
    *("judged", "invocations", "verdict", "not scored"),
]


def cells(table: str) -> list[list[str]]:
    """The cells of a table in a pipe."""
    return [line.split("\t") for line in table.splitlines()]


def criteria(folder: Path, **written: object) -> None:
    (folder / "test_config.json").write_text(json.dumps({"criteria": written}))


def test_a_run_that_meets_every_threshold_passes_quietly(run: Run, folder: Path) -> None:
    write(folder, turn(RIGHT), turn(RIGHT))
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert cells(result.stdout) == [
        COLUMNS,
        [
            "my_agent",
            "refund",
            "response_match_score",
            "1.000",
            "",
            "0.800",
            "2",
            "2",
            "passed",
            "",
        ],
        [
            *("my_agent", "refund", "tool_trajectory_avg_score"),
            *("1.000", "", "1.000", "2", "2", "passed", ""),
        ],
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
    lines = result.stdout.partition("agent\t")[0].splitlines()
    assert lines[0].startswith("my_agent refund trace ")
    assert lines[1:] == [
        "  user: Please do it.",
        f"  expected answer: {EXPECTED_ANSWER}",
        f"  actual answer: {EXPECTED_ANSWER}",
        (
            "  tool_trajectory_avg_score 0.000 failed: 1 of 2 expected calls matched; missing"
            " lookup; unexpected search, mail"
        ),
        (
            "  response_match_score 1.000 passed: precision 1.00 of 20 tokens, recall 1.00 of 20"
            " tokens"
        ),
        "  tool_trajectory_avg_score",
        "  \texpected\tactual",
        "  +\t\tsearch()",
        "  -\tlookup\t",
        "  =\trefund\trefund()",
        "  +\t\tmail()",
        "",
        "= matched, ~ other arguments, ? arguments not recorded, - missing, + unexpected",
        "",
    ]


def test_details_show_failures_first_and_failed_shows_nothing_else(run: Run, folder: Path) -> None:
    unscored = script("refund", "lookup", "refund", answer=EXPECTED_ANSWER, user_input="third")
    write(folder, turn(RIGHT), turn(replace(WRONG, user_input="first")), turn(unscored))
    criteria(folder, tool_trajectory_avg_score=1.0)
    arguments = ("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json")
    shown = {
        option: [
            line.removeprefix("  user: ")
            for line in run(*arguments, option).stdout.splitlines()
            if line.startswith("  user: ")
        ]
        for option in ("--details", "--failed")
    }
    assert shown == {"--details": ["first", "Please do it.", "third"], "--failed": ["first"]}


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
        turn(script("refnd", "lookup")),
        turn(script("", "lookup")),
        turn(script("", "lookup")),
    )
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert result.exit_code == 1
    assert cells(result.stdout) == [COLUMNS, ["", "refund", *[""] * 4, "0", "0", "not run", ""]]
    assert result.stderr.splitlines() == [
        "pathgauge: scenarios with a reference, but without an invocation: refund",
        "2 x no reference: no scenario id",
        "1 x no reference: unknown scenario 'unheard-of'",
        "1 x no reference: unknown scenario 'refnd' (known: 'refund')",
        "Nothing was compared with a threshold, so the gate does not pass.",
    ]


def test_a_run_whose_agent_was_killed_is_named_beside_those_that_pass(
    run: Run, folder: Path
) -> None:
    killed = [one for one in turn(WRONG) if one.name.startswith("execute_tool")]
    write(folder, turn(RIGHT), killed)
    result = run("score", "traces.bin", "--references", "references.yaml")
    assert result.exit_code == 0
    assert result.stderr == (
        "pathgauge: traces.bin: 1 trace with tool calls, but without a span of an agent, which is"
        f" exported when the agent ends: {trace_id(killed)}\n"
    )


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


@pytest.mark.parametrize(
    ("scorer", "threshold", "error"),
    [
        ("Broken", None, "RuntimeError: out of luck"),
        ("Broken", 0.5, "RuntimeError: out of luck"),
        ("Misreads", 0.5, "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("Exits", 0.5, "SystemExit: 0"),
    ],
)
def test_a_scorer_that_raises_fails_the_gate_and_shows_the_error_and_its_place(
    scorer: str, threshold: float | None, error: str, run: Run, folder: Path
) -> None:
    write(folder, turn(RIGHT))
    criteria(folder, broken={"scorer": f"{__name__}:{scorer}", "threshold": threshold}, failure=0.5)
    result = run("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json")
    assert result.exit_code == 1
    place, *reasons = result.stderr.splitlines()
    kind = error.partition(":")[0]
    start = f"pathgauge: broken: the scorer raised {kind} at {__file__}:"
    assert re.fullmatch(rf"{re.escape(start)}\d+ \({scorer}\.score\)", place)
    assert reasons[:2] == [
        "broken for my_agent Error. No score could be given. [refund]",
        f"    {error}",
    ]
    assert reasons[2:] == ["Coverage 0, expected 1: broken scored 0 of 1 invocation (1 error)."] * (
        threshold is not None
    )


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
    assert f"{shown}\trefund\t" in result.stdout
    assert f"tool_trajectory_avg_score for {shown} Failed." in result.stderr
    assert ElementTree.parse(folder / "report.xml").getroot().tag == "testsuites"


def test_json_has_every_invocation_and_failures_go_to_standard_error(
    run: Run, folder: Path
) -> None:
    write(folder, turn(RIGHT), turn(WRONG))
    result = run("score", "traces.bin", "-r", "references.yaml", "--json")
    *objects, verdict = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, verdict["gate"]["passed"]) == (1, False)
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
    assert counts(suite) == {"tests": "4", "failures": "1", "errors": "0", "skipped": "0"}
    cases = suite.findall("testcase")
    assert [
        (case.get("classname"), case.get("name"), [child.tag for child in case]) for case in cases
    ] == [
        ("bad.refund", "response_match_score", ["properties", "failure"]),
        ("bad.refund", "tool_trajectory_avg_score", ["properties"]),
        ("good.refund", "response_match_score", ["properties"]),
        ("good.refund", "tool_trajectory_avg_score", ["properties"]),
    ]
    assert (
        cases[0][1].get("message")
        == "response_match_score for bad Failed. Expected 0.8, but got 0.65. [refund]"
    )


def counts(suite: ElementTree.Element) -> dict[str, str]:
    """The numbers of test cases, by their result."""
    names = ("tests", "failures", "errors", "skipped")
    return {name: suite.attrib[name] for name in names}


def test_junit_shows_that_nothing_was_judged(run: Run, folder: Path) -> None:
    write(folder, turn(script("", "lookup")))
    run("score", "traces.bin", "-r", "references.yaml", "--junit", "report.xml")
    [suite] = ElementTree.parse(folder / "report.xml").getroot()
    assert counts(suite) == {"tests": "2", "failures": "1", "errors": "0", "skipped": "1"}
    cases = suite.findall("testcase")
    assert [(case.get("classname"), case.get("name"), case[0].tag) for case in cases] == [
        ("pathgauge.scenarios", "refund", "skipped"),
        ("pathgauge", "gate", "failure"),
    ]


@dataclass(frozen=True)
class OfShortAnswers:
    """A scorer that has a value for short answers only."""

    name: ClassVar[str] = "of_short_answers"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        if len(actual.final_response or "") > 10:
            return Score.not_evaluated("too_long")
        return Score(1.0)


SHORT, LONG = script("refund", answer="Done."), script("refund", answer="Done, I think.")
GATED = ("score", "traces.bin", "-r", "references.yaml", "--criteria", "test_config.json")


def partly_scored(folder: Path) -> None:
    """One of six answers gets a score, and one of four scenarios is run."""
    write(folder, turn(SHORT), *(turn(LONG) for _ in range(5)))
    criteria(folder, short={"scorer": f"{__name__}:OfShortAnswers", "threshold": 1})
    others: list[dict[str, object]] = [
        {"scenario": name, "expected_tools": []} for name in ("a1", "a2")
    ]
    required = {"scenario": "must", "expected_tools": [], "required": True}
    (folder / "references.yaml").write_text(yaml.safe_dump([REFERENCE, *others, required]))


TOO_FEW = "Coverage 0.167, expected 1: short scored 1 of 6 invocations (5 too_long)."
LESS = ("--min-coverage", 0.16)


@pytest.mark.parametrize(
    ("options", "gaps"),
    [
        ((), [TOO_FEW, "Required scenarios were not run: must."]),
        (LESS, ["Required scenarios were not run: must."]),
        (
            ("--min-coverage", 0.17, "--require", "refund"),
            ["Coverage 0.167, expected 0.17: short scored 1 of 6 invocations (5 too_long)."],
        ),
        ((*LESS, "--require", "refund"), []),
        ((*LESS, "--require", "all"), ["Required scenarios were not run: a1, a2, must."]),
        (
            (*LESS, "--require", "a*", "--require", "refund"),
            ["Required scenarios were not run: a1, a2."],
        ),
    ],
)
def test_a_gate_asks_for_scores_and_for_runs(
    options: tuple[object, ...], gaps: list[str], run: Run, folder: Path
) -> None:
    partly_scored(folder)
    result = run(*GATED, *options)
    assert result.exit_code == bool(gaps)
    assert result.stderr.splitlines() == [
        "pathgauge: scenarios with a reference, but without an invocation: a1, a2, must",
        *gaps,
    ]


def test_the_table_shows_what_was_not_scored(run: Run, folder: Path) -> None:
    partly_scored(folder)
    assert cells(run(*GATED).stdout)[1:] == [
        ["my_agent", "refund", "short", "1.000", "", "1.000", "1", "6", "passed", "5 too_long"],
        ["", "a1", "", "", "", "", "0", "0", "not run", ""],
        ["", "a2", "", "", "", "", "0", "0", "not run", ""],
        ["", "must", "", "", "", "", "0", "0", "not run", "required"],
    ]


def test_the_last_line_of_json_is_the_verdict_of_the_gate(run: Run, folder: Path) -> None:
    partly_scored(folder)
    *objects, last = [json.loads(line) for line in run(*GATED, "--json").stdout.splitlines()]
    [line] = last["gate"].pop("lines")
    for name in ("aggregates", "overall"):
        last["gate"].pop(name)
    assert (len(objects), last) == (
        6,
        {
            "gate": {
                "passed": False,
                "reasons": [TOO_FEW, "Required scenarios were not run: must."],
                "min_coverage": 1.0,
                "coverage": {
                    "short": {
                        "share": pytest.approx(1 / 6),
                        "invocations": 6,
                        "scored": 1,
                        "not_scored": {"too_long": 5},
                    }
                },
                "required_scenarios": ["must"],
                "missing_scenarios": ["must"],
                "scenarios_not_run": ["a1", "a2", "must"],
                "without_reference": {},
                "incomplete": [],
            }
        },
    )
    assert line.pop("duration_s") > 0
    assert line == {
        "agent": "my_agent",
        "scenario": "refund",
        "criterion": "short",
        "verdict": "passed",
        "score": 1.0,
        "deviation": None,
        "threshold": 1.0,
        "invocations": 6,
        "scored": 1,
        "not_scored": {"too_long": 5},
        "explanations": ["too long"],
        "traces": [one["trace_id"] for one in objects],
    }


def test_json_of_failures_has_the_invocations_that_failed_and_the_verdict(
    run: Run, folder: Path
) -> None:
    write(folder, turn(RIGHT), turn(WRONG))
    result = run("score", "traces.bin", "-r", "references.yaml", "--json", "--failed")
    [failed, last] = [json.loads(line) for line in result.stdout.splitlines()]
    assert failed["results"]["tool_trajectory_avg_score"]["verdict"] == "failed"
    assert last["gate"]["lines"][0]["invocations"] == 2


def test_junit_has_traces_times_and_what_is_missing(run: Run, folder: Path) -> None:
    partly_scored(folder)
    objects = [json.loads(line) for line in run(*GATED, "--json").stdout.splitlines()[:-1]]
    result = run(*GATED, "--junit", "report.xml")
    assert result.exit_code == 1
    [suite] = ElementTree.parse(folder / "report.xml").getroot()
    seconds = sum(one["duration_s"] for one in objects)
    assert counts(suite) == {"tests": "5", "failures": "2", "errors": "0", "skipped": "2"}
    assert suite.get("time") == f"{seconds:.3f}"
    assert properties(suite) == {
        "passed": "false",
        "min_coverage": "1",
        "scenarios_not_run": "a1, a2, must",
        "coverage.short": "0.167",
    }
    [line, coverage, *scenarios] = suite.findall("testcase")
    assert line.get("time") == f"{seconds:.3f}"
    assert properties(line) == {
        "score": "1",
        "threshold": "1",
        "invocations": "6",
        "scored": "1",
        "not_scored": "5 too_long",
        "traces": ", ".join(one["trace_id"] for one in objects),
    }
    assert (coverage.get("classname"), coverage[0].get("message")) == (
        "pathgauge.coverage",
        TOO_FEW,
    )
    assert [(case.get("name"), case[0].tag) for case in scenarios] == [
        ("a1", "skipped"),
        ("a2", "skipped"),
        ("must", "failure"),
    ]


def test_a_failure_in_junit_names_its_traces(run: Run, folder: Path) -> None:
    wrong = [turn(WRONG), turn(WRONG)]
    write(folder, turn(RIGHT), *wrong)
    run("score", "traces.bin", "-r", "references.yaml", "--junit", "report.xml")
    [suite] = ElementTree.parse(folder / "report.xml").getroot()
    [failure] = suite.iter("failure")
    explanation = "1 of 2 expected calls matched; missing lookup"
    assert failure.text == "\n".join(f"trace {trace_id(one)}: {explanation}" for one in wrong)


def properties(element: ElementTree.Element) -> dict[str | None, str | None]:
    """The properties of a suite or of a test case."""
    return {one.get("name"): one.get("value") for one in element.findall("properties/property")}


@pytest.mark.parametrize("compressed", [False, True])
def test_standard_input_is_a_trace_file(compressed: bool, run: Run, folder: Path) -> None:
    content = otlp(turn(RIGHT))
    result = CliRunner().invoke(
        app,
        ["score", "-", "-r", "references.yaml", "--json"],
        input=gzip.compress(content) if compressed else content,
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[0])["source"] == "-"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found an empty file, "),
        (b"hello", "found "),
        (b"\x1f\x8bx", "found broken gzip data"),
        (b"\x28\xb5\x2f\xfd", "found zstd compression"),
    ],
)
def test_a_mistake_on_standard_input_says_so(
    content: bytes, message: str, run: Run, folder: Path
) -> None:
    result = CliRunner().invoke(app, ["score", "-", "-r", "references.yaml"], input=content)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"pathgauge: standard input: {message}")


def test_a_path_that_does_not_exist_is_refused(run: Run, folder: Path) -> None:
    result = run("score", "nowhere.bin", "-r", "references.yaml")
    assert result.exit_code == 2
    assert "path 'nowhere.bin' does not exist." in result.stderr


MISTAKES = {
    "a pattern that no scenario matches": (
        ("-r", "references.yaml", "--require", "refnd"),
        (
            "--require: found 'refnd', expected all, or a pattern that matches a scenario of the"
            " references; did you mean 'refund'?"
        ),
    ),
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


def test_patterns_beside_a_configuration_work_in_a_folder_with_brackets_in_its_name(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = folder / "job[1]"
    job.mkdir()
    (folder / "references.yaml").rename(job / "references.yaml")
    (job / "pathgauge.yaml").write_text("criteria: {tool_trajectory_avg_score: 1}")
    write(job, turn(RIGHT))
    monkeypatch.chdir(job)
    result = run("score", "traces.bin", "-c", "pathgauge.yaml", "-r", "*erences.yaml")
    assert (result.exit_code, result.stderr) == (0, "")


def test_many_unknown_scenarios_are_summed_up(run: Run, folder: Path) -> None:
    write(folder, *(turn(script(scenario)) for scenario in ("a", "b", "a", "c", "d", "e")))
    result = run("score", "traces.bin", "-r", "references.yaml")
    assert result.stderr.splitlines()[1:5] == [
        "2 x no reference: unknown scenario 'a'",
        "1 x no reference: unknown scenario 'b'",
        "1 x no reference: unknown scenario 'c'",
        "and 2 more scenarios without reference",
    ]


def test_a_conversation_in_several_files_is_named(run: Run, folder: Path) -> None:
    turns = [{"expected_tools": ["search"]}, {"expected_tools": ["book"]}]
    (folder / "references.yaml").write_text(yaml.safe_dump({"scenario": "trip", "turns": turns}))
    criteria(folder, tool_trajectory_avg_score=0.25)
    (folder / "traces").mkdir()
    write(folder, turn(script("trip", "search")), name="traces/a.bin")
    write(folder, turn(script("trip", "book")), name="traces/b.bin")
    arguments = ("-r", "references.yaml", "--criteria", "test_config.json")
    apart = run("score", "traces/a.bin", "traces/b.bin", *arguments)
    assert (apart.exit_code, apart.stderr.splitlines()) == (
        0,
        [
            "pathgauge: the same conversation is in several files, and each part is scored as if it"
            " were the whole; give the folder of the files instead: conversation"
        ],
    )
    together = run("score", "traces", *arguments)
    assert (together.exit_code, together.stderr) == (0, "")


def test_a_trace_whose_tool_calls_are_in_another_file_than_its_agent_is_named(
    run: Run, folder: Path
) -> None:
    spans = turn(RIGHT)
    tools = [one for one in spans if one.name.startswith("execute_tool")]
    (folder / "traces").mkdir()
    write(folder, [one for one in spans if one not in tools], name="traces/agent.bin")
    write(folder, [*tools, *turn(script("", "other"))], name="traces/tools.bin")
    apart = run("score", "traces/agent.bin", "traces/tools.bin", "-r", "references.yaml")
    assert apart.stderr.splitlines()[:2] == [
        "pathgauge: traces/tools.bin: 1 trace with tool calls, but without a span of an agent,"
        f" which is exported when the agent ends: {trace_id(spans)}",
        "pathgauge: the same trace is in several files, and each part is scored as if it were the"
        f" whole; give the folder of the files instead: {trace_id(spans)}",
    ]
    together = run("score", "traces", "-r", "references.yaml")
    assert (together.exit_code, together.stderr) == (0, "1 x no reference: no scenario id\n")


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

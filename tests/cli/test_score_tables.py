"""`pathgauge score` on tables of predictions: JSON, JSON lines and CSV files instead of traces."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from pathgauge.collector.cli import app
from support.judge_server import JudgeRequest, JudgeServer, Reply, answering
from support.turns import otlp, script, turn

Run = Callable[..., Result]

ON = {"tool_name": "switch", "tool_input": {"on": True}}
OFF = {"tool_name": "switch", "tool_input": {"on": False}}
RIGHT = {
    "id": "on",
    "prompt": "On!",
    "response": "It is on.",
    "reference": "It is on.",
    "predicted_trajectory": [ON],
    "reference_trajectory": [ON],
}
WRONG = {**RIGHT, "id": "off", "prompt": "Off!", "reference_trajectory": [OFF]}
ROWS = [RIGHT, WRONG]

LINES = [
    ["off", "response_match_score", "1.000", "passed"],
    ["off", "tool_trajectory_avg_score", "0.000", "failed"],
    ["on", "response_match_score", "1.000", "passed"],
    ["on", "tool_trajectory_avg_score", "1.000", "passed"],
]


def lines(result: Result) -> list[list[str]]:
    """Scenario, criterion, score and verdict of each line of the gate."""
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    found = [cells for cells in rows if len(cells) == 10 and cells[1] != "*"]
    return [[cells[1], cells[2], cells[3], cells[8]] for cells in found[1:]]


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def in_csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                key: json.dumps(value) if isinstance(value, list | dict) else value
                for key, value in row.items()
            }
        )
    return text.getvalue()


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [row[key] for row in rows] for key in rows[0]}


def as_pandas(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {str(index): row[key] for index, row in enumerate(rows)} for key in rows[0]}


def with_json_text(row: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {**call, "tool_input": json.dumps(call["tool_input"])}
        for call in row["predicted_trajectory"]
    ]
    return {**row, "predicted_trajectory": json.dumps(calls)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("table.json", json.dumps(ROWS)),
        ("table.json", json.dumps(ROWS, indent=2)),
        ("table.jsonl", jsonl(ROWS)),
        ("table.csv", in_csv(ROWS)),
        ("table.csv", "\ufeff" + in_csv(ROWS)),
        ("table.json", json.dumps(columns(ROWS))),
        ("table.json", json.dumps(as_pandas(ROWS))),
        ("table", jsonl([with_json_text(row) for row in ROWS])),
    ],
    ids=["list", "indented", "lines", "csv", "csv of Excel", "columns", "pandas", "JSON text"],
)
def test_each_row_is_scored_against_its_own_reference(
    run: Run, folder: Path, name: str, text: str
) -> None:
    (folder / name).write_text(text)
    result = run("score", name)
    assert lines(result) == LINES
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        1,
        "tool_trajectory_avg_score for (no name) Failed. Expected 1, but got 0. [off]",
    )


def test_a_table_comes_from_standard_input(folder: Path) -> None:
    result = CliRunner().invoke(app, ["score", "-"], input=jsonl(ROWS))
    assert lines(result) == LINES


def test_a_directory_may_contain_tables_and_traces(run: Run, folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_text(jsonl([RIGHT]))
    (folder / "in" / "b.bin").write_bytes(otlp(turn(script("trip", "book", answer="Booked."))))
    (folder / "r.yaml").write_text(json.dumps({"scenario": "trip", "expected_tools": ["book"]}))
    result = run("score", "in", "-r", "r.yaml")
    assert (result.exit_code, lines(result)) == (
        0,
        [
            ["on", "response_match_score", "1.000", "passed"],
            ["on", "tool_trajectory_avg_score", "1.000", "passed"],
            ["trip", "response_match_score", "", "not evaluated"],
            ["trip", "tool_trajectory_avg_score", "1.000", "passed"],
        ],
    )


def test_rows_without_an_id_are_named_after_their_position(run: Run, folder: Path) -> None:
    row: dict[str, Any] = {"predicted_trajectory": [ON], "reference_trajectory": [ON]}
    (folder / "table.json").write_text(json.dumps([row, row]))
    result = run("score", "table.json")
    assert [line[0] for line in lines(result) if "tool_" in line[1]] == [
        "table-row-1",
        "table-row-2",
    ]
    assert result.exit_code == 0


def test_rows_with_the_same_id_are_runs_of_one_scenario(run: Run, folder: Path) -> None:
    (folder / "table.json").write_text(
        json.dumps([RIGHT, {**RIGHT, "predicted_trajectory": [OFF]}])
    )
    result = run("score", "table.json")
    assert ["on", "tool_trajectory_avg_score", "0.500", "failed"] in lines(result)


def test_rows_with_the_same_id_and_different_references_are_a_mistake(
    run: Run, folder: Path
) -> None:
    (folder / "table.jsonl").write_text(jsonl([RIGHT, {**WRONG, "id": "on"}]))
    result = run("score", "table.jsonl")
    assert (result.exit_code, result.stderr) == (
        2,
        "pathgauge: table.jsonl:2:1: [1]: found the id 'on' again with another reference (first at"
        " table.jsonl:1), expected the same reference or another id\n",
    )


def test_what_a_table_does_not_contain_is_not_scored(run: Run, folder: Path) -> None:
    expected: dict[str, Any] = {"reference_trajectory": [], "reference": "On."}
    row = {"id": "on", "predicted_trajectory": None, **expected}
    (folder / "table.json").write_text(json.dumps([row]))
    result = run("score", "table.json")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-3:] == [
        "Coverage 0, expected 1: response_match_score scored 0 of 1 invocation (1"
        " response_not_recorded).",
        "Coverage 0, expected 1: tool_trajectory_avg_score scored 0 of 1 invocation (1"
        " tools_not_recorded).",
        "Nothing was compared with a threshold, so the gate does not pass.",
    ]


def test_coverage_and_required_scenarios_apply_to_tables(run: Run, folder: Path) -> None:
    unknown = {**WRONG, "predicted_trajectory": ""}
    (folder / "table.csv").write_text(in_csv([RIGHT, unknown]))
    assert run("score", "table.csv").exit_code == 1
    assert run("score", "table.csv", "--min-coverage", "0.5", "--require", "o*").exit_code == 0
    result = run("score", "table.csv", "--require", "of")
    assert (result.exit_code, result.stderr) == (
        2,
        "pathgauge: --require: found 'of', expected all, or a pattern that matches a scenario of"
        " the references; did you mean 'off'?\n",
    )


@pytest.mark.parametrize(("no", "yes"), [(0, "1"), (0.0, "1.0"), ("false", True)])
def test_latency_and_failure_of_a_row_are_scored(no: Any, yes: Any, run: Run, folder: Path) -> None:
    rows = [
        {**RIGHT, "latency_in_seconds": 1.5, "failure": no},
        {**WRONG, "latency_in_seconds": "2", "failure": yes},
    ]
    (folder / "table.json").write_text(json.dumps(rows))
    (folder / "c.json").write_text(json.dumps({"criteria": {"latency": None, "failure": None}}))
    result = run("score", "table.json", "--criteria", "c.json")
    assert [line[:3] for line in lines(result)] == [
        ["off", "failure", "1.000"],
        ["off", "latency", ""],
        ["on", "failure", "0.000"],
        ["on", "latency", "1.500"],
    ]


def test_the_reports_name_the_rows(run: Run, folder: Path) -> None:
    (folder / "table.json").write_text(json.dumps(ROWS))
    printed = run("score", "table.json", "--json", "--junit", "report.xml")
    first, second, gate = map(json.loads, printed.stdout.splitlines())
    assert [(one["trace_id"], one["source"]) for one in (first, second)] == [
        ("table.json row 1", "table.json"),
        ("table.json row 2", "table.json"),
    ]
    assert gate["gate"]["passed"] is False
    assert "table.json row 2" in (folder / "report.xml").read_text()
    ElementTree.parse(folder / "report.xml")
    details = run("score", "table.json", "--failed").stdout.splitlines()
    assert details[0] == "(no name) off trace table.json row 2"


def test_a_text_that_mentions_the_column_does_not_make_a_table(run: Run, folder: Path) -> None:
    trace = otlp(turn(script("trip", "book", answer="See predicted_trajectory.")))
    (folder / "traces.bin").write_bytes(trace)
    (folder / "r.yaml").write_text(json.dumps({"scenario": "trip", "expected_tools": ["book"]}))
    assert run("score", "traces.bin", "-r", "r.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            jsonl([RIGHT, {**RIGHT, "predicted_trajectory": 5}]),
            "2:106: [1].predicted_trajectory: found 5, expected a list of tool calls",
        ),
        (
            jsonl([{"predicted_trajectory": [{"tool_input": {}}]}]),
            "1:27: predicted_trajectory[0].tool_name: found nothing, expected this key",
        ),
        (
            jsonl([{"predicted_trajectory": [{"tool_name": "a", "tool_input": [1]}]}]),
            "1:60: predicted_trajectory[0].tool_input: found a list, expected a mapping\n",
        ),
        (
            jsonl([{"predicted_trajectory": [], "reference_trajectory": {"a": 1}}] * 2),
            "1:54: [0].reference_trajectory: found a mapping, expected a list of tool calls",
        ),
        (jsonl([{"predicted_trajectory": [], "prompt": 5}]), "1:40: prompt: found 5, expected"),
        (
            jsonl([{"predicted_trajectory": [], "response": []}]),
            "1:42: response: found a list, expected text",
        ),
        (
            jsonl([{"predicted_trajectory": [], "latency_in_seconds": "soon"}]),
            "1:52: latency_in_seconds: found 'soon', expected a number of seconds",
        ),
        (
            jsonl([{"predicted_trajectory": [], "failure": 3}]),
            "1:41: failure: found 3, expected 0 or 1",
        ),
        (jsonl([{"predicted_trajectory": []}]) + "5\n", "2:1: [1]: found 5, expected a mapping"),
        (jsonl([{"predicted_trajectory": []}]) + "{\n", "2:2: not JSON"),
        (
            'id,predicted_trajectory\na,[]\nb,"[{""tool_name"": 5}]"\n',
            "3:1: [1].predicted_trajectory[0].tool_name: found 5, expected text",
        ),
        ("id,predicted_trajectory\na,[],c\n", "2:1: found 3 cells, expected 2"),
        (
            "id;predicted_trajectory\na;[]\n",
            "1:1: found columns separated by ';', expected commas",
        ),
        (
            "id\tpredicted_trajectory\na\t[]\n",
            "1:1: found columns separated by '\\t', expected commas",
        ),
        (
            r'{"predicted_trajectory": "\ud83d"}' + "\n",
            "1:26: predicted_trajectory: found text with '\\ud83d', expected text that UTF-8 can",
        ),
        ("id,predicted_trajectory\na,[search]\n", "2:1: [0].predicted_trajectory: not JSON"),
    ],
)
def test_a_mistake_in_a_row_names_its_line_and_column(
    run: Run, folder: Path, text: str, expected: str
) -> None:
    (folder / "table").write_text(text)
    result = run("score", "table")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"pathgauge: table:{expected}")


def test_arguments_that_are_no_json_object_are_what_the_agent_wrote(run: Run, folder: Path) -> None:
    row = {**RIGHT, "predicted_trajectory": [{"tool_name": "switch", "tool_input": '{"on": tr'}]}
    (folder / "table.json").write_text(json.dumps([row]))
    (found,) = map(json.loads, run("invocations", "table.json").stdout.splitlines())
    assert [call["arguments"] for call in found["tool_calls"]] == ['{"on": tr']


PREDICTIONS = [{"predicted_trajectory": [ON]}, {"predicted_trajectory": [ON]}]
EXPECTED = [{"reference_trajectory": [ON]}, {"reference_trajectory": [OFF]}]


def write(folder: Path, predictions: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    (folder / "predictions.jsonl").write_text(jsonl(predictions))
    (folder / "expected.jsonl").write_text(jsonl(expected))
    (folder / "c.json").write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": 1}}))


def score_predictions(run: Run) -> Result:
    return run("score", "predictions.jsonl", "-r", "expected.jsonl", "--criteria", "c.json")


@pytest.mark.parametrize("shared", ["id", "prompt"])
def test_rows_find_their_reference_in_another_table(run: Run, folder: Path, shared: str) -> None:
    names = ["x", "y"]
    predictions = [{**row, shared: name} for row, name in zip(PREDICTIONS, names, strict=True)]
    expected = [{**row, shared: name} for row, name in zip(EXPECTED, names, strict=True)]
    write(folder, predictions, expected[::-1])
    result = score_predictions(run)
    assert sorted(line[2] for line in lines(result)) == ["0.000", "1.000"]
    assert "position" not in result.stderr.replace("after their position", "")


@pytest.mark.parametrize("more", [{}, {"prompt": "Only here"}])
def test_tables_without_ids_match_by_position_and_say_so(
    run: Run, folder: Path, more: dict[str, Any]
) -> None:
    write(folder, [{**row, **more} for row in PREDICTIONS], EXPECTED)
    result = score_predictions(run)
    assert lines(result) == [
        ["expected-row-1", "tool_trajectory_avg_score", "1.000", "passed"],
        ["expected-row-2", "tool_trajectory_avg_score", "0.000", "failed"],
    ]
    assert result.stderr.splitlines()[1:2] == [
        "pathgauge: predictions.jsonl: 2 rows matched with expected.jsonl by position (row 1 with"
        " row 1), because they have no ids in common"
    ]


def test_tables_of_different_length_do_not_match_by_position(run: Run, folder: Path) -> None:
    write(folder, PREDICTIONS[:1], EXPECTED)
    result = score_predictions(run)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "pathgauge: predictions.jsonl: found 1 row without an id (id, scenario, scenario_id,"
        " eval_id, case_id, example_id), expected 2 as in expected.jsonl, because they match by"
        " position; give the rows of both files ids",
    )


def test_rows_that_nothing_can_match_are_reported_with_what_to_do(run: Run, folder: Path) -> None:
    write(folder, PREDICTIONS, [{"id": "x", **EXPECTED[0]}])
    result = score_predictions(run)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == (
        "pathgauge: predictions.jsonl: rows that no reference can match: 2, as they have neither"
        " expected columns (reference_trajectory, reference) nor an id nor a prompt; give them and"
        " the references ids"
    )


def test_positions_in_several_files_match_nothing(run: Run, folder: Path) -> None:
    write(folder, PREDICTIONS, EXPECTED[:1])
    (folder / "more.jsonl").write_text(jsonl(EXPECTED[1:]))
    result = run("score", "predictions.jsonl", "-r", "expected.jsonl", "-r", "more.jsonl")
    assert result.exit_code == 1
    assert "rows that no reference can match: 2" in result.stderr


def test_a_row_is_compared_with_its_own_reference_first(run: Run, folder: Path) -> None:
    write(folder, [{"id": "on", **PREDICTIONS[0], **EXPECTED[0]}], [{"id": "on", **EXPECTED[1]}])
    assert lines(score_predictions(run)) == [["on", "tool_trajectory_avg_score", "1.000", "passed"]]


def test_a_table_without_rows_has_no_invocation(run: Run, folder: Path) -> None:
    (folder / "table.csv").write_text("id,predicted_trajectory\n")
    result = run("score", "table.csv")
    assert result.exit_code == 1
    assert "table.csv: found no agent invocation in a table without rows" in result.stderr


def test_judges_see_the_reference_of_each_row(run: Run, folder: Path) -> None:
    def judge(request: JudgeRequest) -> Reply:
        right = request.data["response"] == request.data["expected_response"]
        return answering(reasoning="Compared.", verdict="valid" if right else "invalid")

    rows = [RIGHT, {**WRONG, "response": "It is off."}]
    (folder / "table.json").write_text(json.dumps(rows))
    with JudgeServer(judge=judge) as model:
        providers = {"local": {"base_url": model.url, "allow_private": True}}
        configuration = {
            "criteria": {"final_response_match_v2": {"threshold": 0.5, "samples": 1}},
            "judge": {"model": "local:judge", "providers": providers},
        }
        (folder / "pathgauge.yaml").write_text(json.dumps(configuration))
        result = run("score", "table.json", "--config", "pathgauge.yaml")
    assert lines(result) == [
        ["off", "final_response_match_v2", "0.000", "failed"],
        ["on", "final_response_match_v2", "1.000", "passed"],
    ]

"""`pathgauge score` of files that were cut off: nobody knows which invocations are missing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import Result

from pathgauge import assert_passes
from support.turns import otlp_json, script, turn

Run = Callable[..., Result]

ONE, TWO = (otlp_json(turn(script("s", "a"), conversation=name)) for name in ("one", "two"))
CUT = ONE + b"\n" + TWO[:-80]
MISSING = (
    f"traces/cut.jsonl: line 2: the last record is incomplete ({len(TWO) - 80} bytes);"
    " an invocation may be missing."
)


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "refs.yaml").write_text("scenario: s\nexpected_tools: [a]\n")
    (folder / "traces").mkdir()
    (folder / "traces" / "cut.jsonl").write_bytes(CUT)
    (folder / "traces" / "README.md").write_text("no traces")
    (folder / "pathgauge.yaml").write_text("criteria: {tool_trajectory_avg_score: 1}\n")


def gate(run: Run, *options: str) -> Result:
    return run("score", "traces", "-c", "pathgauge.yaml", "-r", "refs.yaml", *options)


def test_a_gate_does_not_pass_over_a_file_that_was_cut_off(run: Run, folder: Path) -> None:
    result = gate(run, "--json", "--junit", "junit.xml", "--markdown", "report.md")
    assert result.exit_code == 1
    assert result.stderr.count("incomplete") == 1
    assert result.stderr.endswith(f"\n{MISSING}\n")
    found = json.loads(result.stdout.splitlines()[-1])["gate"]
    assert (found["passed"], found["reasons"]) == (False, [MISSING])
    assert found["incomplete"] == [MISSING.removesuffix("; an invocation may be missing.")]
    [case] = ElementTree.parse(folder / "junit.xml").findall(".//testcase[error]")
    assert (case.get("classname"), case.get("name")) == ("pathgauge.traces", "traces/cut.jsonl")
    assert "an invocation may be missing" in (folder / "report.md").read_text()


def test_an_operator_may_accept_it(run: Run) -> None:
    result = gate(run, "--allow-incomplete")
    assert result.exit_code == 0
    assert "pathgauge: traces/cut.jsonl: line 2: the last record is incomplete" in result.stderr


@pytest.mark.parametrize(
    ("damaged", "exit_code"),
    [
        (ONE + b'\n{"a": \n' + ONE, 1),
        (TWO[:-80], 1),
        (gzip.compress(ONE)[:-20], 1),
        (b"# Traces of agents", 0),
        (b'{"name": "a package"}', 0),
    ],
    ids=["a wrong line", "one document", "compressed", "text", "other JSON"],
)
def test_a_damaged_file_of_a_folder_is_not_taken_for_one_without_traces(
    run: Run, folder: Path, damaged: bytes, exit_code: int
) -> None:
    (folder / "traces" / "cut.jsonl").write_bytes(ONE)
    (folder / "traces" / "other").write_bytes(damaged)
    result = gate(run)
    assert result.exit_code == exit_code
    assert result.stderr.count("skipped traces/other: ") == 1
    assert ("an invocation may be missing" in result.stderr) == (exit_code == 1)


def test_a_gate_does_not_pass_over_spans_that_are_rejected(run: Run, folder: Path) -> None:
    ids = json.loads(TWO)
    for span in ids["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["traceId"] = "0" * 32
    lines = ONE + b"\n" + json.dumps(ids).encode()
    (folder / "traces" / "cut.jsonl").write_bytes(lines)
    result = gate(run)
    rejected = "traces/cut.jsonl: rejected 4 records as invalid OTLP; an invocation may be missing."
    assert result.exit_code == 1
    assert result.stderr.endswith(f"\n{rejected}\n")
    assert result.stderr.count("rejected") == 1
    assert gate(run, "--allow-incomplete").exit_code == 0


def test_an_assertion_is_as_strict() -> None:
    criteria = {"tool_trajectory_avg_score": 1}
    with pytest.raises(AssertionError, match="an invocation may be missing") as raised:
        assert_passes("traces/cut.jsonl", "refs.yaml", criteria)
    assert str(raised.value).count("incomplete") == 1
    Path("traces/cut.jsonl").write_bytes(ONE)
    assert_passes("traces/cut.jsonl", "refs.yaml", criteria)

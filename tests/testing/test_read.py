"""`read_traces` and `read_references` give what the commands understand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathgauge import ConfigError, Invocation, read_references, read_traces
from pathgauge.collector.cli import app
from pathgauge.collector.cli.output.json_output import invocation_object
from pathgauge.collector.offline.trace_files import UnreadableFileError
from support.exports import jaeger_json, tempo_json
from support.repository import CAPTURES
from support.thinning import thinned
from support.turns import otlp, otlp_json, script, turn

CAPTURED = sorted(CAPTURES.glob("*/S2"))
TRACES = otlp(turn(script("refund", "lookup")), turn(script("parcel", "track")))


def objects(invocations: list[Invocation], source: Path) -> list[object]:
    """The invocations as `pathgauge invocations` prints them."""
    return [json.loads(json.dumps(invocation_object(one, str(source)))) for one in invocations]


@pytest.mark.parametrize("folder", thinned(CAPTURED, 8), ids=lambda folder: folder.parent.name)
def test_the_invocations_of_a_folder_are_those_of_the_command(folder: Path) -> None:
    with pytest.warns(UserWarning, match="skipped"):
        read = read_traces(folder)
    printed = CliRunner().invoke(app, ["invocations", str(folder)]).stdout
    assert objects(read, folder) == [json.loads(line) for line in printed.splitlines()]
    assert read


@pytest.mark.parametrize("data", [TRACES, tempo_json(TRACES), jaeger_json(TRACES)])
def test_every_format_is_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "traces"
    path.write_bytes(data)
    found = {(one.scenario_id, one.tool_calls[0].name) for one in read_traces(str(path))}
    assert found == {("refund", "lookup"), ("parcel", "track")}


def test_a_table_of_predictions_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    path.write_text('{"id": "lights", "predicted_trajectory": ["switch"], "response": "Off."}\n')
    [invocation] = read_traces(path)
    assert (invocation.scenario_id, invocation.final_response) == ("lights", "Off.")
    assert [call.name for call in invocation.tool_calls] == ["switch"]


def test_invocations_keep_what_any_scorer_may_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(otlp(turn(script("refund", "lookup", answer="Found."))))
    [invocation] = read_traces(path)
    tools = [span.attributes.get("gen_ai.tool.name") for span in invocation.spans]
    assert sorted(filter(None, tools)) == ["lookup"]
    assert [call.text for call in invocation.model_calls][-1] == "Found."


def test_what_was_skipped_is_a_warning_at_the_callers_line(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(otlp_json(turn(script("refund"))) + b'\n{"resourceSpans": [')
    with pytest.warns(UserWarning, match="the last record is incomplete") as warned:
        assert len(read_traces(path)) == 1
    assert [one.filename for one in warned] == [__file__]


def test_a_file_without_agents_gives_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_text('{"resourceSpans": []}')
    with pytest.warns(UserWarning, match="found no agent invocation in 0 spans"):
        assert read_traces(path) == []


def test_a_file_without_traces_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(UnreadableFileError, match=r"notes\.txt: found neither JSON nor OTLP"):
        read_traces(path)


def test_references_of_all_files_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("{scenario: second, expected_tools: []}")
    (tmp_path / "a.yaml").write_text(
        "- {scenario: zero, expected_tools: []}\n- {scenario: first, expected_tools: []}"
    )
    found = read_references(f"{tmp_path}/*.yaml")
    assert [one.scenario_id for one in found] == ["zero", "first", "second"]
    assert read_references(tmp_path / "b.yaml") == found[2:]


@pytest.mark.parametrize("pattern", ["missing.yaml", "*.none"])
def test_references_that_do_not_exist_are_an_error(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern.replace("*", r"\*")):
        read_references(tmp_path / pattern)

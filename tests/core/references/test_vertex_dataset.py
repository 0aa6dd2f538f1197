"""Evaluation datasets of Vertex AI, in all their layouts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.config import reference_files
from pathgauge.collector.config.plugins.formats import installed_formats
from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    csv_source,
    json_source,
    jsonl_source,
)
from pathgauge.collector.core.references import formats
from pathgauge.collector.core.references.formats import FileContents
from pathgauge.collector.core.references.rows import IDS, position_of
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn
from support.repository import REFERENCE_FILES

LIGHTS_OFF = ReferenceTurn(
    "Turn off the lamp\nin the bedroom.",
    (
        ExpectedCall("find_device", {"room": "bedroom"}),
        ExpectedCall("switch", {"device": 2, "on": False}),
        ExpectedCall("log"),
    ),
    "Off.",
)
ROWS: list[dict[str, Any]] = [
    {
        "id": "off",
        "prompt": "Off!",
        "reference_trajectory": [{"tool_name": "switch", "tool_input": {"on": False}}],
        "reference": "Off.",
    },
    {"id": "on", "prompt": "On!", "reference_trajectory": ["switch"], "reference": None},
]
REFERENCES = [
    Reference("off", (ReferenceTurn("Off!", (ExpectedCall("switch", {"on": False}),), "Off."),)),
    Reference("on", (ReferenceTurn("On!", (ExpectedCall("switch"),)),)),
]


def bare(read: FileContents) -> list[Reference]:
    return [Reference(entry.reference.scenario_id, entry.reference.turns) for entry in read.entries]


def read(data: Json) -> FileContents:
    return formats.load(json_source.read(json.dumps(data), "d.json"), installed_formats())


def load(data: Json) -> list[Reference]:
    return bare(read(data))


def message(document: Document) -> str:
    with pytest.raises(ConfigError) as caught:
        formats.load(document, installed_formats())
    return str(caught.value)


@pytest.mark.parametrize("name", ["vertex.csv", "vertex.jsonl"])
def test_a_dataset_in_lines_or_in_csv(name: str) -> None:
    found = reference_files.read(REFERENCE_FILES / name)
    small_talk = Reference("small_talk", (ReferenceTurn("Hello", ()),))
    assert bare(found) == [Reference("lights_off", (LIGHTS_OFF,)), small_talk]
    assert (found.ignored["predicted_trajectory"] > 0, found.notes, found.titles) == (
        True,
        [],
        {"Vertex AI dataset"},
    )
    assert found.entries[0].reference.source == str(REFERENCE_FILES / name) + (
        ":2" if name == "vertex.csv" else ":1"
    )


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        {key: [row[key] for row in ROWS] for key in ROWS[0]},
        {key: {str(index): row[key] for index, row in enumerate(ROWS)} for key in ROWS[0]},
        [{**row, "reference_trajectory": json.dumps(row["reference_trajectory"])} for row in ROWS],
        [{**row, "reference_trajectory": repr(row["reference_trajectory"])} for row in ROWS],
        [{**row, "response": "Done.", "latency": 1.5} for row in ROWS],
        [{**row, "scenario": row["id"], "id": None} for row in ROWS],
    ],
    ids=[
        "rows",
        "columns",
        "columns as pandas writes them",
        "JSON in text",
        "Python in text",
        "with more keys",
        "another id",
    ],
)
def test_all_layouts_of_a_dataset_give_the_same_references(data: Json) -> None:
    assert load(data) == REFERENCES


@pytest.mark.parametrize(
    ("trajectory", "calls"),
    [
        (None, None),
        ("", None),
        ([], ()),
        ("[]", ()),
        (["a", {"tool_name": "b"}], (ExpectedCall("a"), ExpectedCall("b"))),
        ([{"tool_name": "a", "tool_input": None}], (ExpectedCall("a"),)),
        ([{"tool_name": "a", "tool_input": {}}], (ExpectedCall("a", {}),)),
        (
            [{"tool_name": "a", "tool_input": '{"x": {"y": 1}}'}],
            (ExpectedCall("a", {"x": {"y": 1}}),),
        ),
        (
            [{"tool_name": "a", "tool_input": {"x": {"$any": True}}}],
            (ExpectedCall("a", {"x": {"$any": True}}),),
        ),
    ],
)
def test_a_missing_trajectory_differs_from_an_empty_one(trajectory: Json, calls: Json) -> None:
    (reference,) = load(
        [{"id": 7, "prompt": "x", "reference": "y", "reference_trajectory": trajectory}]
    )
    assert reference == Reference("7", (ReferenceTurn("x", calls, "y"),))


def test_a_dataset_for_responses_alone_allows_any_tools() -> None:
    assert load({"prompt": ["x"], "reference": ["y"], "id": ["a"]}) == [
        Reference("a", (ReferenceTurn("x", None, "y"),))
    ]


def test_a_dataset_without_prompts_has_rows_and_columns_too() -> None:
    expected = [
        Reference("a", (ReferenceTurn(None, (ExpectedCall("t"),)),)),
        Reference("b", (ReferenceTurn(None, ()),)),
    ]
    assert load({"id": ["a", "b"], "reference_trajectory": [["t"], []]}) == expected
    assert load({"id": "a", "reference_trajectory": ["t"]}) == expected[:1]


def test_rows_without_an_id_are_named_after_their_prompt_alone() -> None:
    rows = [
        {"prompt": "x", "reference_trajectory": ["a"]},
        {"prompt": "y", "reference_trajectory": ["a"]},
    ]
    others = [
        {"prompt": "y", "reference_trajectory": ["b"], "predicted_trajectory": ["c"]},
        {"prompt": "x", "reference_trajectory": []},
    ]
    first, second = [reference.scenario_id for reference in load(rows)]
    assert first != second
    assert [reference.scenario_id for reference in load(others)] == [second, first]
    assert read(rows).notes == [
        (
            f"rows without an id ({', '.join(IDS)}): 2, named after a hash of their prompt, such as"
            f" {first}"
        ),
    ]


def test_a_mistake_in_a_column_with_its_own_index_has_its_position() -> None:
    data = {
        "id": {"7": "a", "9": "b"},
        "prompt": {"7": "x", "9": 5},
        "reference_trajectory": {"7": [], "9": ["t"]},
    }
    text = json.dumps(data)
    assert message(json_source.read(text, "d.json")) == (
        f"d.json:1:{text.index('5') + 1}: [1].prompt: found 5, expected text"
    )


def test_rows_with_neither_id_nor_prompt_are_named_after_their_position() -> None:
    rows = [
        {"reference_trajectory": ["a"]},
        {"reference_trajectory": ["c"], "prompt": "x"},
        {"reference_trajectory": ["a"], "prompt": ""},
        {"reference_trajectory": ["d"], "id": "d"},
    ]
    found = read(rows)
    names = [entry.reference.scenario_id for entry in found.entries]
    assert (names[0], *names[2:]) == ("d-row-1", "d-row-3", "d")
    assert [position_of(entry.reference) for entry in found.entries] == [0, None, 2, None]
    assert found.notes[1:] == [
        f"rows with neither an id ({', '.join(IDS)}) nor a prompt: 2, named after their position,"
        " such as d-row-1; no trace matches them, only the same row of a table of predictions: give"
        " them ids"
    ]
    assert len(read(rows[1:2]).notes) == 1


def test_a_name_that_looks_like_a_position_is_none_if_the_row_has_a_prompt() -> None:
    (reference,) = load([{"id": "d-row-1", "prompt": "x", "reference_trajectory": []}])
    assert position_of(reference) is None


def test_a_single_row_without_an_id_is_named_after_its_file() -> None:
    row = json.dumps({"prompt": "x", "reference_trajectory": []})
    for file in ("some/refund.v2.json", "some\\refund.json", "refund"):
        assert [
            entry.reference.scenario_id
            for entry in formats.load(json_source.read(row, file), installed_formats()).entries
        ] == ["refund"]


def test_ignored_keys_are_counted() -> None:
    call = {"tool_name": "a", "tool_input": {}, "tool_output": 1}
    data = [
        {
            "id": 1,
            "scenario": "s",
            "reference_trajectory": [call, call],
            "latency": 1,
            "response": "",
            "predicted_trajectory": [],
        }
    ]
    assert read(data).ignored == {
        "scenario": 1,
        "latency": 1,
        "reference_trajectory.tool_output": 2,
    }


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            [{"id": "a", "prompt": 5, "reference_trajectory": []}],
            "1:24: [0].prompt: found 5, expected text",
        ),
        (
            [{"id": "a", "reference": ["x"], "reference_trajectory": []}],
            "1:27: [0].reference: found a list, expected text",
        ),
        (
            [{"id": "a", "reference_trajectory": {}}],
            "1:38: [0].reference_trajectory: found a mapping, expected a list of tool calls",
        ),
        (
            [{"id": "a", "reference_trajectory": [5]}],
            "1:39: [0].reference_trajectory[0]: found 5, expected a mapping",
        ),
        (
            [{"id": "a", "reference_trajectory": [{"tool_input": {}}, {"tool_name": ""}]}],
            (
                "1:39: [0].reference_trajectory[0].tool_name: found nothing, expected this"
                " key\nd.json:1:73: [0].reference_trajectory[1].tool_name: found '', expected text"
                " that is not empty"
            ),
        ),
        (
            [{"id": "a", "reference_trajectory": [{"tool_name": "t", "tool_input": [1]}]}],
            "1:72: [0].reference_trajectory[0].tool_input: found a list, expected a mapping",
        ),
        (
            [{"id": "a", "reference_trajectory": [{"tool_name": "t", "tool_input": "x=1"}]}],
            (
                "1:72: [0].reference_trajectory[0].tool_input: not JSON: found 'x', expected a"
                " value (character 1 of the text)"
            ),
        ),
        (
            [{"id": "a", "reference_trajectory": "lookup, refund"}],
            "1:38: [0].reference_trajectory: not JSON: found 'l', expected a value (character 1 of"
            " the text)",
        ),
        (
            [{"id": "a", "prompt": "x", "reference_trajectory": None}],
            "1:2: [0]: found neither reference_trajectory nor reference, expected",
        ),
        (
            [{"id": True, "reference_trajectory": []}],
            "1:9: [0].id: found true, expected text or a whole number",
        ),
        (
            [
                {"prompt": "x", "reference_trajectory": []},
                {"prompt": "x", "reference_trajectory": ["a"]},
            ],
            (
                "1:47: [1]: found a row without an id and with the prompt of another one, expected"
                " an id (id, scenario,"
            ),
        ),
        ([{"id": "a", "reference_trajectory": []}, 5], "1:43: [1]: found 5, expected a mapping"),
        (
            {"prompt": ["x", "y"], "reference_trajectory": [[]]},
            "1:48: reference_trajectory: found 1 cell, expected 2 as in the first column",
        ),
        (
            {"prompt": ["x"], "reference_trajectory": 5},
            "1:43: reference_trajectory: found 5, expected a column of cells",
        ),
        (
            {"prompt": ["x"], "id": ["a"], "reference_trajectory": [[{}]]},
            "1:58: [0].reference_trajectory[0].tool_name: found nothing",
        ),
    ],
)
def test_a_problem_has_its_position(data: Json, expected: str) -> None:
    assert message(json_source.read(json.dumps(data), "d.json")).startswith(f"d.json:{expected}")


def test_a_problem_in_csv_or_json_lines_has_its_line() -> None:
    text = 'id,prompt,reference_trajectory\na,"x\ny",[]\nb,z,"[{""tool_name"": 5}]"\n'
    assert (
        message(csv_source.read(text, "d.csv"))
        == "d.csv:4:1: [1].reference_trajectory[0].tool_name: found 5, expected text"
    )
    lines = (
        '{"id": 1, "reference_trajectory": []}\n\n{"id": 2, "reference_trajectory": [{"tool_name":'
        " 5}]}"
    )
    assert (
        message(jsonl_source.read(lines, "d.jsonl"))
        == "d.jsonl:3:50: [1].reference_trajectory[0].tool_name: found 5, expected text"
    )

"""Trajectories of LangGraph graphs."""

from __future__ import annotations

import json

import pytest

from pathgauge.collector.config import reference_files
from pathgauge.collector.config.plugins.formats import installed_formats
from pathgauge.collector.core.documents import ConfigError, json_source
from pathgauge.collector.core.references import formats
from pathgauge.collector.core.references.formats import FileContents
from pathgauge.scorers.types import ExpectedCall, Json, ReferenceTurn
from support.repository import REFERENCE_FILES

GOLDEN = REFERENCE_FILES

STEPS = [["__start__", "agent", "tools", "agent"]]
TURN = ReferenceTurn(None, (ExpectedCall("agent"), ExpectedCall("tools"), ExpectedCall("agent")))


def read(data: Json) -> FileContents:
    return formats.load(json_source.read(json.dumps(data), "graph.json"), installed_formats())


def test_a_thread_as_agentevals_extracts_it() -> None:
    found = reference_files.read(GOLDEN / "graph.json")
    (entry,) = found.entries
    assert entry.reference.scenario_id == "graph"
    assert entry.reference.turns == (
        ReferenceTurn("Plan a trip", (ExpectedCall("planner"), ExpectedCall("approval"))),
        ReferenceTurn(
            None,
            (ExpectedCall("approval"), ExpectedCall("booking"), ExpectedCall("booking:tools")),
            "Booked.",
        ),
    )
    assert found.ignored == {"steps.__start__": 1, "steps.__interrupt__": 1}
    assert found.notes == [
        "steps are nodes of a graph: as tool calls they match tools, and agents used as tools, of"
        " the same name"
    ]


@pytest.mark.parametrize(
    ("data", "scenario"),
    [
        ({"steps": STEPS}, "graph"),
        ({"results": [{}], "steps": STEPS, "inputs": None}, "graph"),
        ([{"id": "a", "steps": STEPS}], "a"),
        ([{"id": 5, "reference_outputs": {"steps": STEPS}}], "5"),
        ({"outputs": {"inputs": [], "results": [], "steps": STEPS}}, "graph"),
    ],
)
def test_a_trajectory_may_be_the_whole_document_or_part_of_a_row(data: Json, scenario: str) -> None:
    (entry,) = read(data).entries
    assert (entry.reference.scenario_id, entry.reference.turns) == (scenario, (TURN,))


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ({"__start__": {"messages": [{"type": "human", "content": "Hi"}]}}, "Hi"),
        (
            {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "x"},
                ]
            },
            "Hi",
        ),
        ({"__start__": "Hi"}, "Hi"),
        ("Hi", "Hi"),
        ("__resuming__", None),
        ({"a": 1, "b": 2}, None),
        (5, None),
    ],
)
def test_the_user_input_is_found_in_the_inputs(inputs: Json, asked: str | None) -> None:
    (entry,) = read([{"id": "a", "inputs": [inputs], "steps": [["x"]]}]).entries
    assert entry.reference.turns == (ReferenceTurn(asked, (ExpectedCall("x"),)),)


def test_ignored_keys_are_counted() -> None:
    found = read(
        [
            {
                "id": "a",
                "inputs": ["Hi"],
                "tags": ["x"],
                "reference_outputs": {"steps": STEPS, "thread": 1},
            }
        ]
    )
    assert found.ignored == {"tags": 1, "thread": 1, "steps.__start__": 1}
    assert found.entries[0].reference.turns[0].user_input == "Hi"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"steps": []}, "1:11: steps: found a list, expected at least one entry"),
        ({"steps": ["agent"]}, "1:12: steps[0]: found 'agent', expected a list"),
        ({"steps": [["agent", 5]]}, "1:22: steps[0][1]: found 5, expected text"),
        ({"steps": [[""]]}, "1:13: steps[0][0]: found '', expected text that is not empty"),
        (
            {"results": [{}, {}], "steps": STEPS},
            "1:13: results: found 2 values, expected 1, one for each list of steps",
        ),
        ([{"steps": STEPS}, 5], "1:57: [1]: found 5, expected a mapping"),
    ],
)
def test_a_problem_has_its_position(data: Json, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(data)
    assert str(caught.value) == f"graph.json:{expected}"


def test_conversations_without_an_id_are_matched_by_no_invocation() -> None:
    rows = [{"inputs": ["x"], "steps": [["a"]]}, {"inputs": ["x", "y"], "steps": [["a"], ["b"]]}]
    notes = read(rows).notes
    assert [note.partition(",")[0] for note in notes if "match:" in note] == [
        "rows that no invocation can match: 1"
    ]

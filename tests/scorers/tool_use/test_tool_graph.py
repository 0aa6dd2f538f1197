"""The graph of tools: what each result must offer next."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pathgauge.scorers.authoring.builders import invocation, tool_call
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.tool_graph import ToolGraph
from pathgauge.scorers.types import Score, ToolCall

GRAPH = {"lookup": ("check_policy", "refund"), "refund": ()}


def value_or_reason(*calls: ToolCall, **others: Any) -> float | str | None:
    score = ToolGraph(GRAPH).score(invocation(*calls, **others), None)
    return score.reason or score.value


def lookup(*actions: Any, **others: Any) -> ToolCall:
    return ToolCall("lookup", {}, **({"result": {"available_actions": list(actions)}} | others))


BOTH = {"tool": "check_policy", "description": "…"}, {"tool": "refund"}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(lookup(*BOTH), 1.0, id="offered"),
        pytest.param(lookup(*BOTH, {"tool": "cancel"}), 1.0, id="with others"),
        pytest.param(lookup(BOTH[0]), 0.0, id="one missing"),
        pytest.param(lookup(), 0.0, id="none"),
        pytest.param(lookup("check_policy", " refund"), 1.0, id="names alone"),
        pytest.param(
            lookup({"name": "x"}, None, 3, {"tool": 4}, ["refund"], *BOTH),
            1.0,
            id="actions that are none",
        ),
        pytest.param(lookup(result={"available_actions": {"tool": "refund"}}), 0.0, id="no list"),
        pytest.param(lookup(result={}), 0.0, id="no actions"),
        pytest.param(lookup(result="found"), 0.0, id="text"),
        pytest.param(
            lookup(result=json.dumps({"available_actions": BOTH})),
            1.0,
            id="text that holds an object",
        ),
        pytest.param(lookup(result={"error": "boom"}), 0.0, id="an error without actions"),
        pytest.param(lookup(result=None), "results_not_recorded", id="not recorded"),
        pytest.param(
            lookup(result=None, error="boom"), "not_applicable", id="a failure without result"
        ),
        pytest.param(tool_call("search"), "not_applicable", id="another tool"),
        pytest.param(ToolCall("refund", result={}), 1.0, id="a tool that needs to offer nothing"),
    ],
)
def test_a_result_offers_what_the_graph_expects(call: ToolCall, expected: float | str) -> None:
    assert value_or_reason(call) == expected


def test_every_result_counts() -> None:
    actual = invocation(
        lookup(*BOTH), tool_call("search"), lookup(BOTH[1]), lookup(), lookup(result=None)
    )
    line = "lookup (call 2) did not offer check_policy, and 1 more"
    expected = {
        "lacking": [[2, "lookup", ["check_policy"]], [3, "lookup", ["check_policy", "refund"]]]
    }
    assert ToolGraph(GRAPH).score(actual, None) == Score(0.0, None, line, expected)
    good = ToolGraph(GRAPH).score(invocation(lookup(*BOTH), lookup(*BOTH)), None)
    assert good == Score(1.0, None, "lookup x2 offered all expected actions", {"lacking": []})


def test_a_result_that_was_seen_to_lack_actions_is_certain() -> None:
    lossy = frozenset({"no_tool_spans"})
    assert value_or_reason(lookup(), flags=lossy) == 0.0
    assert value_or_reason(lookup(*BOTH), flags=lossy) == "tools_not_recorded"


def test_the_graph_is_written_as_a_mapping() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(ToolGraph)
    scorer = adapter.validate_python(
        {"graph": {" lookup": ["check_policy", "refund "], "refund": []}}, extra="forbid"
    )
    assert (scorer, hash(scorer)) == (ToolGraph(GRAPH), hash(ToolGraph(GRAPH)))
    assert scorer != ToolGraph({"lookup": ("refund",)})
    assert adapter.validate_python(json.loads(adapter.dump_json(scorer)), extra="forbid") == scorer
    with pytest.raises(ValidationError, match=r"graph\.lookup"):
        adapter.validate_python({"graph": {"lookup": "refund"}}, extra="forbid")


@pytest.mark.parametrize("graph", [{"": ("a",)}, {"a": ("b", " ")}])
def test_tools_of_the_graph_have_names(graph: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match=r"graph: found ' ?', expected the name of a tool"):
        ToolGraph(graph)


def test_it_keeps_the_contract() -> None:
    check_scorer(ToolGraph())
    check_scorer(
        ToolGraph({"search": ("book",)}),
        [(invocation(ToolCall("search", result={"available_actions": [[]]})), None)],
    )

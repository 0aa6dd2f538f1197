"""A reference file with any content is loaded or refused with `ConfigError`."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given, settings, strategies as st

from pathgauge.collector.config.plugins.formats import installed_formats
from pathgauge.collector.core.documents import ConfigError, Document, csv_source, json_source
from pathgauge.collector.core.references import formats
from pathgauge.scorers.types import Json, Reference

NATIVE = [
    "scenario",
    "input",
    "turns",
    "expected_tools",
    "expected_response",
    "criteria",
    "name",
    "args",
    "optional",
    "any_order",
    "thresholds",
    "alternatives",
    "forbidden_tools",
    "response_contains",
    "expected_agent",
    "escalate",
    "rubrics",
    "agents",
    "$any",
    "$near",
    "$literal",
]
ROWS = [
    "id",
    "prompt",
    "reference",
    "reference_trajectory",
    "tool_name",
    "tool_input",
    "messages",
    "inputs",
    "reference_outputs",
    "outputs",
    "role",
    "type",
    "content",
    "tool_calls",
    "function",
    "function_call",
    "name",
    "arguments",
    "args",
    "text",
    "data",
    "steps",
    "results",
]
ROLES = st.sampled_from(["user", "assistant", "human", "ai", "tool", "system"])
ADK = [
    "eval_cases",
    "evalCases",
    "eval_id",
    "evalId",
    "conversation",
    "conversation_scenario",
    "user_content",
    "userContent",
    "parts",
    "text",
    "final_response",
    "intermediate_data",
    "tool_uses",
    "toolUses",
    "invocation_events",
    "content",
    "function_call",
    "name",
    "args",
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)


PLAIN = st.text(max_size=3).filter(lambda key: not key.startswith("$"))
"""Keys that are not those of matchers."""


def data(keys: list[str]) -> st.SearchStrategy[Json]:
    names = st.sampled_from(keys) | PLAIN if keys else PLAIN
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
        max_leaves=15,
    )


def load(document: Document) -> list[Reference]:
    with suppress(ConfigError):
        return [entry.reference for entry in formats.load(document, installed_formats()).entries]
    return []


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {"scenario": st.text() | data(NATIVE)}, optional={key: data(NATIVE) for key in NATIVE[1:]}
    )
)
def test_any_scenario_is_loaded_or_refused(scenario: Json) -> None:
    load(json_source.read(json.dumps(scenario), "r.json"))


@settings(deadline=None)
@given(
    st.builds(
        lambda cases: {"eval_cases": cases},
        data(ADK) | st.lists(st.dictionaries(st.sampled_from(ADK), data(ADK)), max_size=3),
    )
)
def test_any_evalset_is_loaded_or_refused(evalset: Json) -> None:
    load(json_source.read(json.dumps(evalset), "e.json"))


MESSAGES = st.lists(
    st.dictionaries(st.sampled_from(ROWS[10:18]), ROLES | data(ROWS), max_size=5), max_size=3
)


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(ROWS), data(ROWS), max_size=5), max_size=3)
    | st.dictionaries(st.sampled_from(ROWS), data(ROWS) | MESSAGES, max_size=5)
    | MESSAGES
    | st.lists(
        st.fixed_dictionaries({"reference_outputs": MESSAGES}, optional={"inputs": data(ROWS)}),
        max_size=2,
    )
)
def test_any_dataset_is_loaded_or_refused(dataset: Json) -> None:
    load(json_source.read(json.dumps(dataset), "d.json"))


@given(st.text(alphabet="id,prompt\"'[]{}:\n5"))
def test_any_csv_is_loaded_or_refused(text: str) -> None:
    with suppress(ConfigError):
        load(csv_source.read("id,prompt,reference_trajectory\n" + text, "d.csv"))


TURNS = st.fixed_dictionaries(
    {"input": st.text()},
    optional={
        "expected_tools": st.lists(
            st.text(min_size=1)
            | st.fixed_dictionaries(
                {"name": st.text(min_size=1)},
                optional={"args": st.dictionaries(PLAIN, data([]), max_size=3)},
            ),
            max_size=3,
        ),
        "expected_response": st.text(),
    },
)


@settings(deadline=None)
@given(st.text(min_size=1), st.lists(TURNS, min_size=1, max_size=3))
def test_any_valid_reference_is_loaded_as_written(
    scenario: str, turns: list[dict[str, Json]]
) -> None:
    written = {"scenario": scenario, "turns": turns}
    (reference,) = load(json_source.read(json.dumps(written), "r.json"))
    assert reference.scenario_id == scenario
    for found, turn in zip(reference.turns, turns, strict=True):
        calls = (
            None
            if found.tool_calls is None
            else [(call.name, call.arguments) for call in found.tool_calls]
        )
        expected = [
            (t, None) if isinstance(t, str) else (t["name"], t.get("args"))
            for t in turn.get("expected_tools", [])
        ]
        assert (found.user_input, found.response) == (turn["input"], turn.get("expected_response"))
        assert calls == (expected if "expected_tools" in turn else None)
    assert len(reference.version) == 12

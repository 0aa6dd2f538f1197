"""References recorded from good traces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.core.documents import ConfigError, yaml_source
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.references import Match, native
from pathgauge.collector.core.references.export_native import to_yaml
from pathgauge.collector.offline.record import Recording, RecordOptions, record
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.authoring.builders import invocation, tool_call
from pathgauge.scorers.types import ExpectedCall, Invocation, Reference, ReferenceTurn, ToolCall

A, B, C = tool_call("a", x=1), tool_call("b"), tool_call("c")
EXPECTED_A, EXPECTED_B, EXPECTED_C = (
    ExpectedCall("a", {"x": 1}),
    ExpectedCall("b", {}),
    ExpectedCall("c", {}),
)


def replayed(*invocations: Invocation, source: str = "t.json") -> Replayed:
    evaluator = Evaluator(())
    numbered = [replace(one, span_id=f"{index:016x}") for index, one in enumerate(invocations)]
    return Replayed(
        source,
        tuple(evaluator.evaluate(one, Match(unmatched="no_scenario_id")) for one in numbered),
        (),
        (),
    )


def recorded(*invocations: Invocation, **options: Any) -> Recording:
    return record([replayed(*invocations)], RecordOptions(**options))


def calls(*made: ToolCall, **options: Any) -> tuple[ExpectedCall, ...] | None:
    return recorded(invocation(*made), **options).references[0].turns[0].tool_calls


def message(*paths: Replayed, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        record(paths, RecordOptions(**options))
    return str(caught.value)


def test_the_behaviour_of_the_agent_becomes_the_expectation() -> None:
    one = invocation(
        A,
        tool_call("b", y={"z": [1.5, None]}),
        scenario_id="s",
        user_input="Hi",
        final_response="Done",
    )
    turn = ReferenceTurn("Hi", (EXPECTED_A, ExpectedCall("b", {"y": {"z": [1.5, None]}})), "Done")
    assert recorded(one) == Recording((Reference("s", (turn,)),), ())


def test_an_agent_that_called_no_tool_is_expected_to_call_none() -> None:
    assert calls() == ()


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((None, None, None), (None, None, None)),
        ((7, 8, 9), (None, None, None)),
        ((7, 7, 9), (0, 0, None)),
        ((7, 7, 7), (0, 0, 0)),
        ((None, 7, 7), (None, 0, 0)),
    ],
)
def test_calls_that_one_message_asked_for_may_come_in_any_order(
    groups: Iterable[int | None], expected: Iterable[int | None]
) -> None:
    found = calls(
        *[replace(call, group=group) for call, group in zip((A, B, C), groups, strict=True)]
    )
    assert found == tuple(
        replace(c, group=g)
        for c, g in zip((EXPECTED_A, EXPECTED_B, EXPECTED_C), expected, strict=True)
    )


def test_the_groups_of_two_messages_are_two_groups() -> None:
    found = calls(*[replace(call, group=group) for call, group in ((A, 4), (B, 4), (C, 5), (A, 5))])
    assert [call.group for call in found or ()] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        "not an object",
        {"a": {1, 2}},
        {"a": (1, 2)},
        {"a": {1: 2}},
        {1: 2},
        {"a": "\ud83d"},
        {"\ud83d": 1},
        {"a": b"x"},
    ],
)
def test_arguments_that_no_file_can_hold_are_left_out_with_a_note(arguments: Any) -> None:
    recording = recorded(invocation(ToolCall("a", arguments), B, scenario_id="s"))
    assert recording.references[0].turns[0].tool_calls == (ExpectedCall("a"), EXPECTED_B)
    assert recording.notes == (
        (
            "t.json: scenario s: any arguments are accepted for a: they were not captured, or are"
            " not plain JSON"
        ),
    )


def test_arguments_that_are_nested_too_deep_for_a_file_are_left_out() -> None:
    value: Any = 1
    for _ in range(60):
        value = {"a": [value]}
    assert calls(tool_call("t", deep=value)) == (ExpectedCall("t"),)


def test_arguments_and_responses_may_be_left_out() -> None:
    recording = recorded(
        invocation(A, final_response="Done", scenario_id="s"), arguments=False, response=False
    )
    assert recording == Recording(
        (Reference("s", (ReferenceTurn(None, (ExpectedCall("a"),)),)),), ()
    )


@pytest.mark.parametrize("response", [None, ""])
def test_a_response_that_was_not_captured_is_not_expected(response: str | None) -> None:
    recording = recorded(invocation(scenario_id="s", final_response=response))
    assert recording.references[0].turns == (ReferenceTurn(None, (), None),)
    assert recording.notes == ("t.json: scenario s: no response was captured, so none is expected",)


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    (turn,) = (
        recorded(invocation(final_response="a\ud83d", user_input="b\ud83d")).references[0].turns
    )
    assert (turn.response, turn.user_input) == ("a?", "b?")


@pytest.mark.parametrize("flag", ["no_tool_spans", "dropped_spans"])
def test_calls_that_may_be_missing_from_the_telemetry_are_not_expected(flag: Any) -> None:
    recording = recorded(invocation(A, scenario_id="s", flags=frozenset({flag})))
    assert recording.references[0].turns[0].tool_calls is None
    assert [note.split(": ")[1:3] for note in recording.notes] == [
        ["scenario s", "no tool calls are expected or forbidden"]
    ]


@pytest.mark.parametrize("flag", ["truncated", "redacted"])
def test_incomplete_content_causes_a_note(flag: Any) -> None:
    assert recorded(invocation(A, scenario_id="s", flags=frozenset({flag}))).notes == (
        (f"t.json: scenario s: content was {flag} before it arrived: review what was recorded"),
    )


def test_the_invocations_of_a_conversation_are_turns_in_order() -> None:
    turns = [
        invocation(call, conversation_id="c", scenario_id="s", final_response=call.name)
        for call in (A, B, C)
    ]
    other = invocation(A, conversation_id="c", scenario_id="other")
    recording = recorded(turns[0], other, *turns[1:])
    assert [[turn.response for turn in reference.turns] for reference in recording.references] == [
        ["a", "b", "c"],
        ["done"],
    ]
    stated = [replace(turn, turn=place) for turn, place in zip(turns, (2, 0, 1), strict=True)]
    assert [turn.response for turn in recorded(*stated).references[0].turns] == ["b", "c", "a"]


def test_conversations_of_other_tenants_paths_and_scenarios_are_not_mixed() -> None:
    one = invocation(A, conversation_id="c")
    recording = record(
        [replayed(one, replace(one, tenant="t")), replayed(one, source="u.json")], RecordOptions()
    )
    assert [len(reference.turns) for reference in recording.references] == [1]


def test_traces_of_one_store_are_turns_of_their_conversation_in_whatever_order() -> None:
    second = invocation(B, conversation_id="c", trace_id="2" * 32, start_ns=2, scenario_id="s")
    first = invocation(A, conversation_id="c", trace_id="1" * 32, start_ns=1, scenario_id="s")
    traces = [replayed(one, source=f"trace {one.trace_id}") for one in (second, first, second)]
    recording = record(traces, RecordOptions(), of_one_store=True)
    assert [turn.tool_calls for turn in recording.references[0].turns] == [
        (EXPECTED_A,),
        (EXPECTED_B,),
    ]
    assert recording.notes == ()


def test_one_scenario_can_be_set_for_all_invocations() -> None:
    conflict = invocation(A, scenario_id="x", flags=frozenset({"scenario_conflict"}))
    recording = recorded(invocation(A, scenario_id=None), conflict, scenario="s")
    assert recording == Recording(
        (Reference("s", (ReferenceTurn(None, (EXPECTED_A,), "done"),)),), ()
    )


def test_invocations_without_a_scenario_are_skipped() -> None:
    conflict = invocation(scenario_id="x", flags=frozenset({"scenario_conflict"}))
    recording = recorded(invocation(A, scenario_id="s"), invocation(scenario_id=None), conflict)
    assert [reference.scenario_id for reference in recording.references] == ["s"]
    assert recording.notes == (
        "t.json: invocations skipped because they lack a unique scenario id: 2; --scenario gives"
        " them one",
    )
    assert (
        message(replayed(conflict))
        == "t.json: found no invocation with a scenario id, expected one; --scenario gives all"
        " of them one"
    )


def test_failed_invocations_are_an_error_unless_allowed() -> None:
    failed = invocation(
        A, scenario_id="s", error=True, error_type="KeyError", trace_id="f00", conversation_id="c"
    )
    crashed = replace(failed, scenario_id="r", error_type=None)
    assert message(replayed(failed, crashed, invocation(A))).split("\n") == [
        (
            "t.json: scenario s: found a failed invocation (KeyError, trace f00), expected success,"
            " or --allow-failed"
        ),
        (
            "t.json: scenario r: found a failed invocation (error, trace f00), expected success, or"
            " --allow-failed"
        ),
    ]
    assert len(recorded(failed, crashed, failed=True).references) == 2


@pytest.mark.parametrize("places", [(1,), (0, 2), (0, 0), (1, 2)])
def test_a_conversation_with_missing_turns_is_an_error(places: Iterable[int]) -> None:
    turns = [invocation(A, scenario_id="s", conversation_id="c", turn=place) for place in places]
    assert (
        message(replayed(*turns))
        == f"t.json: scenario s: found the turns {', '.join(map(str, places))} of a conversation,"
        " expected every turn from 0 once"
    )


def test_an_invocation_without_conversation_is_one_turn_whatever_its_number() -> None:
    assert len(recorded(invocation(A, turn=3)).references[0].turns) == 1


LEFT_OUT = (
    "left out a trajectory that differs from the first (without a conversation id, an invocation is"
    " no second turn); --alternatives keeps it"
)


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        ((A, B), (A, B), None),
        ((A, B), (B, A), LEFT_OUT),
        ((A,), (tool_call("a", x=2),), LEFT_OUT),
        (
            (replace(A, group=1), replace(B, group=1)),
            (replace(B, group=5), replace(A, group=5)),
            None,
        ),
        ((replace(A, group=1), replace(B, group=1)), (A, B), LEFT_OUT),
    ],
)
def test_the_first_trajectory_of_a_scenario_counts(
    first: Iterable[ToolCall], second: Iterable[ToolCall], note: str | None
) -> None:
    recording = recorded(invocation(*first, scenario_id="s"), invocation(*second, scenario_id="s"))
    assert recording.references == recorded(invocation(*first, scenario_id="s")).references
    assert recording.notes == (() if note is None else (f"t.json: scenario s: {note}",))


def test_further_trajectories_can_become_alternatives_without_repetition() -> None:
    made = [(A,), (B,), (A,), (), (B,)]
    recording = recorded(*[invocation(*one, scenario_id="s") for one in made], alternatives=True)
    turn = ReferenceTurn(None, (EXPECTED_A,), "done", alternatives=((EXPECTED_B,), ()))
    assert recording == Recording((Reference("s", (turn,)),), ())


def test_each_turn_of_a_conversation_has_its_own_alternatives() -> None:
    made = [
        invocation(call, scenario_id="s", conversation_id=conversation)
        for conversation, call in (("c", A), ("c", B), ("d", A), ("d", C))
    ]
    (reference,) = recorded(*made, alternatives=True).references
    assert [turn.alternatives for turn in reference.turns] == [(), ((EXPECTED_C,),)]


def test_a_conversation_with_other_turns_is_no_alternative() -> None:
    short = invocation(A, scenario_id="s", conversation_id="c")
    long = [invocation(A, scenario_id="s", conversation_id="d")] * 2
    unknown = invocation(scenario_id="s", flags=frozenset({"no_tool_spans"}))
    text = (
        "t.json: scenario s: left out a conversation that cannot be an alternative, because its"
        " turns differ from those of the first"
    )
    assert recorded(short, *long, alternatives=True).notes == (text,)
    assert recorded(short, unknown, alternatives=True).notes[-1:] == (text,)
    assert recorded(short, *long).notes == (
        "t.json: scenario s: left out a trajectory that differs from the first;"
        " --alternatives keeps it",
    )


@pytest.mark.parametrize("alternatives", [False, True])
def test_there_are_no_notes_about_what_is_not_recorded(alternatives: bool) -> None:
    first = invocation(A, scenario_id="s", final_response="Done.")
    same = invocation(A, scenario_id="s", final_response=None, flags=frozenset({"truncated"}))
    recording = recorded(first, same, alternatives=alternatives)
    assert recording == recorded(first)
    assert recording.notes == ()


def test_an_alternative_has_notes_about_its_calls_only() -> None:
    first = invocation(A, scenario_id="s", final_response="Done.")
    other = invocation(
        replace(B, arguments=None),
        scenario_id="s",
        final_response=None,
        flags=frozenset({"truncated"}),
    )
    assert recorded(first, other, alternatives=True).notes == (
        "t.json: scenario s: content was truncated before it arrived: review what was recorded",
        "t.json: scenario s: any arguments are accepted for b: they were not captured, or are not"
        " plain JSON",
    )


def test_recorded_references_can_be_loaded() -> None:
    odd = tool_call(
        "t",
        **{
            "$any": True,
            "nested": {"$near": 1, "n": float("inf")},
            "day": "2026-01-31",
            "no": "NO",
        },
    )
    made = [
        invocation(odd, replace(A, group=0), replace(B, group=0), scenario_id="1e5"),
        invocation(C, scenario_id="1e5"),
    ]
    references = recorded(*made, alternatives=True).references
    (document,) = yaml_source.read(to_yaml(references), "r.yaml")
    assert tuple(reference for _, reference in native.load(document).references) == references

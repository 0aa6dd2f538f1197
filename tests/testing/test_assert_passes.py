"""`assert_passes` is the gate of `pathgauge score` as an assertion, and says why it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pathgauge
from pathgauge import (
    ConfigError,
    Invocation,
    Reference,
    ReferenceTurn,
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
    tool_calls,
)
from pathgauge.collector.testing.failure_text import MAX_TEXT
from support.judge_server import JudgeRequest, JudgeServer, Reply, answering
from support.turns import otlp, script, turn

TRAJECTORY = {"tool_trajectory_avg_score": 1.0}
REFUND = Reference(
    "scenario",
    (reference_turn(expected_call("lookup", id=1), expected_call("pay"), response="Paid."),),
)
GOOD = invocation(tool_call("lookup", id=1), tool_call("pay"), final_response="Paid.")
BAD = invocation(
    tool_call("lookup", id=2), tool_call("mail"), final_response="No.", user_input="Pay!"
)

DIFFERENT = "lookup with other arguments"
FAILURE = f"""\
the invocations do not pass
- response_match_score for agent Failed. Expected 0.8, but got 0. [scenario]
- tool_trajectory_avg_score for agent Failed. Expected 1, but got 0. [scenario]

agent scenario trace 4bf92f3577b34da6a3ce929d0e0e4736
  user: Pay!
  expected answer: Paid.
  actual answer: No.
  tool_trajectory_avg_score 0.000 failed: 0 of 2 expected calls matched; {DIFFERENT} (id:
    expected 1, found 2); missing pay; unexpected mail
  response_match_score 0.000 failed: precision 0.00 of 1 tokens, recall 0.00 of 1 tokens
  tool_trajectory_avg_score
  expected         actual
  lookup(id=1)  ~  lookup(id=2)
                +  mail()
  pay()         -

= matched, ~ other arguments, ? arguments not recorded, - missing, + unexpected"""


def failure(*arguments: Any, **options: Any) -> str:
    """The text of the assertion, which must fail."""
    with pytest.raises(AssertionError) as raised:
        pathgauge.assert_passes(*arguments, **options)
    return str(raised.value)


def reasons(text: str) -> list[str]:
    return [line[2:] for line in text.splitlines() if line.startswith("- ")]


def files(folder: Path, *invocations: Sequence[Any]) -> tuple[Path, Path]:
    """A trace file and a reference file."""
    traces, references = folder / "traces", folder / "refund.yaml"
    traces.write_bytes(otlp(*invocations))
    references.write_text("{scenario: refund, expected_tools: [{name: lookup}]}")
    return traces, references


def test_the_text_shows_scores_thresholds_answers_and_both_trajectories() -> None:
    assert failure(BAD, REFUND) == FAILURE


def test_a_good_invocation_passes_in_every_form() -> None:
    pathgauge.assert_passes(GOOD, REFUND)
    pathgauge.assert_passes([GOOD, GOOD], [REFUND], TRAJECTORY)
    pathgauge.assert_passes(iter([GOOD]), iter([REFUND]), {"tool_trajectory_f1": 0.5})


def test_a_trace_file_and_reference_files_pass_or_fail(tmp_path: Path) -> None:
    traces, references = files(tmp_path, turn(script("refund", "lookup")))
    for given in (references, str(references), f"{tmp_path}/*.yaml", [references]):
        pathgauge.assert_passes(traces, given, TRAJECTORY)
    traces, _ = files(tmp_path, turn(script("refund", "pay")))
    text = failure(str(traces), references, TRAJECTORY)
    assert "missing lookup; unexpected pay" in text
    assert "my_agent refund trace" in text


def test_references_of_files_and_objects_are_added_up(tmp_path: Path) -> None:
    traces, references = files(
        tmp_path, turn(script("refund", "lookup")), turn(script("parcel", "track"))
    )
    parcel = Reference("parcel", (ReferenceTurn(tool_calls=expected_calls("track")),))
    any_arguments = {"tool_trajectory_avg_score": {"threshold": 1.0, "ignore_args": True}}
    pathgauge.assert_passes(traces, [references, parcel], any_arguments)
    with pytest.raises(ConfigError, match="found the scenario 'parcel' again"):
        pathgauge.assert_passes(traces, [parcel, parcel], TRAJECTORY)


def test_criteria_of_a_reference_override_the_given_ones() -> None:
    lenient = Reference("scenario", REFUND.turns, criteria={"tool_trajectory_avg_score": 0.0})
    pathgauge.assert_passes(BAD, lenient, TRAJECTORY)


def test_criteria_can_be_a_configuration_or_an_adk_file(tmp_path: Path) -> None:
    config, adk = tmp_path / "pathgauge.yaml", tmp_path / "test_config.json"
    config.write_text("criteria: {tool_trajectory_f1: 0.6}")
    adk.write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": 0.5}}))
    for path in (config, adk):
        pathgauge.assert_passes(GOOD, REFUND, path)
    assert reasons(failure(BAD, REFUND, str(config))) == [
        "tool_trajectory_f1 for agent Failed. Expected 0.6, but got 0.5. [scenario]"
    ]
    assert reasons(failure(BAD, REFUND, adk)) == [
        "tool_trajectory_avg_score for agent Failed. Expected 0.5, but got 0. [scenario]"
    ]


def test_references_of_a_configuration_are_used_without_others(tmp_path: Path) -> None:
    traces, _ = files(tmp_path, turn(script("refund", "lookup")))
    config = tmp_path / "pathgauge.yaml"
    config.write_text("{references: [refund.yaml], criteria: {tool_trajectory_avg_score: 1.0}}")
    pathgauge.assert_passes(traces, (), config)


def test_given_references_take_the_place_of_those_of_a_configuration(tmp_path: Path) -> None:
    traces, references = files(tmp_path, turn(script("refund", "lookup")))
    config = tmp_path / "pathgauge.yaml"
    config.write_text("{references: [refund.yaml], criteria: {tool_trajectory_avg_score: 1.0}}")
    [read] = pathgauge.read_references(references)
    other = replace(read, turns=(ReferenceTurn(tool_calls=expected_calls("pay")),))
    for given in (references, read, [read]):
        pathgauge.assert_passes(traces, given, config)
    assert reasons(failure(traces, other, config)) == [
        "tool_trajectory_avg_score for my_agent Failed. Expected 1, but got 0. [refund]"
    ]


def test_scores_of_runs_are_averaged_as_the_gate_does() -> None:
    pathgauge.assert_passes([GOOD, BAD], REFUND, {"tool_trajectory_avg_score": 0.5})
    text = failure([GOOD, BAD], REFUND, {"tool_trajectory_avg_score": 0.6})
    assert reasons(text) == [
        "tool_trajectory_avg_score for agent Failed. Expected 0.6, but got 0.5. [scenario]"
    ]
    assert "user: Pay!" in text


@pytest.mark.parametrize(
    ("scenario_id", "reason"),
    [
        ("scenarii", "unknown scenario 'scenarii' (known: 'scenario')"),
        (None, "no scenario id"),
    ],
)
def test_an_invocation_without_reference_fails(scenario_id: str | None, reason: str) -> None:
    lost = invocation(*GOOD.tool_calls, scenario_id=scenario_id)
    expected = (
        f"No reference for 1 of 2 invocations ({reason}), needed by tool_trajectory_avg_score."
    )
    assert reasons(failure([GOOD, lost], [REFUND], TRAJECTORY | {"failure": 0.0})) == [expected]


def test_no_reference_is_needed_by_criteria_that_compare_with_none() -> None:
    pathgauge.assert_passes(invocation(scenario_id=None), (), {"failure": 0.0})
    pathgauge.assert_passes(
        invocation(scenario_id=None), (), {"failure": 0.0, "tool_trajectory_f1": {}}
    )


def test_invocations_without_scenario_are_runs_of_the_only_reference_object() -> None:
    unnamed = invocation(*GOOD.tool_calls, scenario_id=None)
    pathgauge.assert_passes(unnamed, REFUND, TRAJECTORY)


def test_turns_without_conversation_are_one_conversation_of_the_only_reference() -> None:
    dialogue = Reference(
        "talk",
        tuple(ReferenceTurn(tool_calls=expected_calls(name)) for name in ("first", "second")),
    )

    def said(tool: str, start: int, **fields: Any) -> Invocation:
        return invocation(*tool_calls(tool), start_ns=start, **fields)

    turns = [said("first", 1, scenario_id=None), said("second", 2, scenario_id=None)]
    pathgauge.assert_passes(turns, dialogue, TRAJECTORY)
    assert reasons(failure(turns[:1], dialogue, TRAJECTORY)) == [
        "tool_trajectory_avg_score for agent Failed. Expected 1, but got 0.5. [talk]"
    ]
    named = [said(name, 1, scenario_id="talk") for name in ("first", "second")]
    text = failure(named, [dialogue], TRAJECTORY)
    assert "2 no_conversation_id" in text


def test_turns_are_numbered_by_their_start_in_each_conversation() -> None:
    dialogue = Reference(
        "talk",
        tuple(ReferenceTurn(tool_calls=expected_calls(name)) for name in ("first", "second")),
    )
    turns = [
        invocation(
            *tool_calls(name), scenario_id="talk", conversation_id=conversation, start_ns=start
        )
        for conversation in ("a", "b")
        for start, name in ((2, "second"), (1, "first"))
    ]
    pathgauge.assert_passes(turns, [dialogue], TRAJECTORY)


def test_turns_that_telemetry_numbers_need_no_conversation() -> None:
    dialogue = Reference(
        "talk",
        tuple(ReferenceTurn(tool_calls=expected_calls(name)) for name in ("first", "second")),
    )
    second = invocation(*tool_calls("second"), scenario_id="talk", turn=1)
    pathgauge.assert_passes(second, dialogue, TRAJECTORY)


def test_turns_beyond_the_kept_ones_are_scored_without_reference() -> None:
    talk = Reference("talk", (ReferenceTurn(response="Hello."), ReferenceTurn(response="Bye.")))
    turns = [invocation(scenario_id="talk", conversation_id="a", error=n == 9) for n in range(10)]
    assert reasons(failure(turns, talk, {"failure": 0.0})) == [
        "failure for agent Failed. Expected 0, but got 0.1. [talk]"
    ]


def test_an_unexpected_turn_of_another_agent_counts_for_that_of_the_conversation() -> None:
    talk = Reference("talk", (ReferenceTurn(response="Hello."), ReferenceTurn(response="Bye.")))
    said = [("agent", "Hello."), ("agent", "Bye."), ("survey", "Did you like it?")]
    turns = [
        replace(
            invocation(scenario_id="talk", conversation_id="a", agent=agent, start_ns=number),
            final_response=response,
        )
        for number, (agent, response) in enumerate(said)
    ]
    assert reasons(failure(turns, talk, {"response_match_score": 0.8})) == [
        "response_match_score for agent Failed. Expected 0.8, but got 0.666667. [talk]"
    ]


def test_a_missing_turn_counts_also_where_the_others_expect_nothing() -> None:
    """The agent has stopped before the only turn in which calls are expected."""
    greeting = ReferenceTurn(response="Hello.")
    booking = ReferenceTurn(tool_calls=expected_calls("book"))
    only = invocation(scenario_id="trip", conversation_id="a", final_response="Hello.")
    criteria = {"tool_trajectory_f1": 0.8, "failure": 0.0}
    assert reasons(failure([only], Reference("trip", (greeting, booking)), criteria)) == [
        "tool_trajectory_f1 for agent Failed. Expected 0.8, but got 0. [trip]"
    ]
    pathgauge.assert_passes([only], Reference("trip", (greeting, greeting)), criteria)


def test_marks_are_explained_only_below_trajectories() -> None:
    assert "= matched" not in failure(BAD, REFUND, {"response_match_score": 0.8})


def test_content_that_was_not_recorded_fails() -> None:
    silent = invocation(*GOOD.tool_calls, final_response=None)
    text = failure([GOOD, silent], REFUND, {"response_match_score": 0.8})
    assert reasons(text) == [
        "Coverage 0.5, expected 1: response_match_score scored 1 of 2 invocations"
        " (1 response_not_recorded)."
    ]
    assert "actual answer: (not recorded)" in text
    pathgauge.assert_passes([GOOD, silent], REFUND, {"response_match_score": 0.8}, min_coverage=0.5)


def test_a_judge_without_a_model_fails() -> None:
    text = failure(GOOD, REFUND, {"final_response_match_v2": 0.5})
    assert "scored 0 of 1 invocation (1 judge_unconfigured)" in text
    assert "note: no judge is configured" in text


def verdict(request: JudgeRequest) -> Reply:
    """A judge by the words of the answer."""
    right = request.data["response"] == request.data["expected_response"]
    return answering(reasoning="I compared them.", verdict="valid" if right else "invalid")


def test_judges_of_a_configuration_are_waited_for_also_in_conversations(tmp_path: Path) -> None:
    talk = Reference("talk", (ReferenceTurn(response="Hello."), ReferenceTurn(response="Bye.")))
    hello, bye, no = (
        invocation(scenario_id=None, start_ns=start, final_response=answer)
        for start, answer in enumerate(("Hello.", "Bye.", "No."))
    )
    with JudgeServer(judge=verdict) as model:
        providers = {"local": {"base_url": model.url, "allow_private": True}}
        config = tmp_path / "pathgauge.yaml"
        config.write_text(
            json.dumps(
                {
                    "criteria": {"final_response_match_v2": {"threshold": 0.9, "samples": 1}},
                    "judge": {"model": "local:judge", "providers": providers, "retries": 0},
                }
            )
        )
        pathgauge.assert_passes([hello, bye], talk, config)
        wrong, missing = failure([hello, no], talk, config), failure([hello], talk, config)
    assert "No." in wrong
    assert "I compared them." in wrong
    for text in (wrong, missing):
        assert reasons(text) == [
            "final_response_match_v2 for agent Failed. Expected 0.9, but got 0.5. [talk]"
        ]


def test_criteria_of_spans_need_the_spans_of_a_file(tmp_path: Path) -> None:
    traces, _ = files(tmp_path, turn(script("refund", "lookup")))
    criteria = {"has_matching_span": {"query": {"name_equals": "execute_tool lookup"}}}
    criteria["has_matching_span"]["threshold"] = 1.0  # type: ignore[assignment]
    pathgauge.assert_passes(traces, (), criteria)
    pathgauge.assert_passes(pathgauge.read_traces(traces), (), criteria)
    assert "spans_not_recorded" in failure(GOOD, (), criteria)


@pytest.mark.parametrize("run", [[], ()])
def test_an_empty_run_fails(run: Sequence[Invocation]) -> None:
    assert failure(run, REFUND) == (
        "the invocations do not pass\n"
        "- Nothing was compared with a threshold, so the gate does not pass.\n"
        "note: found no invocation in the run"
    )


def test_a_file_without_agents_fails_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_text('{"resourceSpans": []}')
    assert "note: " + str(path) + ": found no agent invocation" in failure(path, REFUND)


def test_rows_of_tables_bring_their_references(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    row = {"predicted_trajectory": ["switch"], "reference_trajectory": ["switch"]}
    path.write_text(json.dumps(row))
    pathgauge.assert_passes(path, (), TRAJECTORY)
    path.write_text(json.dumps(row | {"predicted_trajectory": ["dim"]}))
    assert "missing switch; unexpected dim" in failure(path, (), TRAJECTORY)


@pytest.mark.parametrize(
    ("references", "criteria", "problem"),
    [
        ("missing.yaml", TRAJECTORY, "no such file"),
        (REFUND, {"tool_trajectory_f2": 1.0}, "tool_trajectory_f2"),
        (REFUND, {"tool_trajectory_avg_score": 2.0}, "tool_trajectory_avg_score"),
    ],
)
def test_mistakes_are_errors_and_not_failures(
    references: str | Reference, criteria: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        pathgauge.assert_passes(GOOD, references, criteria)


def test_hostile_text_is_bounded_and_cannot_control_the_terminal() -> None:
    huge = "\x1b[2J<script> word " * 30_000
    bad = invocation(tool_call("mail", text=huge), agent=huge[:200], final_response=huge)
    text = failure([bad] * 15, REFUND)
    assert len(text) < MAX_TEXT + 100
    assert "\x1b" not in text
    assert "more characters" in text


def test_only_the_first_invocations_are_shown() -> None:
    text = failure([BAD] * 15, REFUND, TRAJECTORY)
    assert text.count("user: Pay!") == 10
    assert text.endswith("… and 5 more invocations")


def talk(*tools: str, conversation: str | None = "talk") -> list[Invocation]:
    return [
        replace(
            invocation(tool_call(tool)),
            span_id=f"{number:016x}",
            conversation_id=conversation,
            start_ns=number,
        )
        for number, tool in enumerate(tools, 1)
    ]


def denied(request: JudgeRequest) -> Reply:
    goal = {"statement": "A refund.", "reasoning": "There is none.", "holds": False}
    return answering(findings=[goal])


def test_judges_of_sessions_are_asked_when_all_turns_are_scored(tmp_path: Path) -> None:
    with JudgeServer(judge=denied) as model:
        config = tmp_path / "pathgauge.yaml"
        providers = {"local": {"base_url": model.url, "allow_private": True}}
        settings = {
            "criteria": {"multi_turn_task_success_v1": 1.0},
            "judge": {"model": "local:judge", "providers": providers, "retries": 0},
        }
        config.write_text(json.dumps(settings))
        text = failure(talk("a", "b"), (), config)
    assert reasons(text) == ["multi_turn_task_success_v1 for agent Failed. Expected 1, but got 0."]


def test_criteria_of_sessions_are_those_of_all_turns() -> None:
    criteria = {
        "tool_calls": 1,
        "session_turns": 2,
        "calls": {"scorer": "mean_of_turns", "of": "tool_calls", "threshold": 1},
    }
    pathgauge.assert_passes(talk("a", "b"), criteria=criteria)
    assert reasons(failure(talk("a", "b", "c"), (), criteria)) == [
        "session_turns for agent Failed. Expected 2, but got 3."
    ]


def test_turns_without_a_conversation_have_no_session_and_do_not_pass() -> None:
    criteria = {"tool_calls": 1, "session_turns": 2}
    assert reasons(failure(talk("a", "b", conversation=None), (), criteria)) == [
        "No conversation id of 2 of 2 invocations, needed by session_turns."
    ]

"""A trace that was rebuilt from evidence reads like the one that was sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from pathgauge import ExpectedCall, Invocation, ModelCall, ReferenceTurn, Scorer, ToolCall
from pathgauge.collector.config.plugins.dialects import installed_dialects
from pathgauge.collector.config.plugins.scorers import scorer_class
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.evidence.evidence import Evidence, decode, encode, evidence_of
from pathgauge.collector.core.evidence.trace import trace_of
from pathgauge.collector.core.invocations.scenario import DEFAULT_KEYS
from pathgauge.collector.core.otlp.spans import Scope, Span
from pathgauge.collector.core.redaction import Redactor, Rules
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.references.recorded_turn import RecordOptions, recorded_turn
from pathgauge.collector.offline.replay import replay, replay_files
from pathgauge.collector.offline.trace_files import TraceFiles
from pathgauge.collector.testing import span_id, trace_id
from pathgauge.scorers.types import CallKind, Flag
from support.repository import CAPTURES

EVERY = sorted(path.parent for path in CAPTURES.rglob("invocations.json"))
DIFFERENT = {
    # The tool that ends a run, which the conventions cannot state.
    "browser-use-0.13-laminar/follow-up",
    *(f"dspy-3.4-openinference/{name}" for name in ("S1", "S1-v2", "S3", "S3-v2", "S5")),
    *(f"dspy-3.4-otelgenai/{name}" for name in ("v2", "v2-turns")),
    "instructor-1.17-openinference/turns",
    # One model call encloses all rounds, which the conventions cannot state.
    *(f"voltagent-2.10-native/{name}" for name in ("sub", "turns")),
    # A number as result, which becomes its text.
    "google-genai-1.3b0/chat",
    *(f"openai-agents-weave-0.54/{name}" for name in ("par", "sub")),
    "haystack-2.24-native/pipeline-nocontent",  # a sub-agent without a name or any content
    "pydantic-ai-agento11y-0.21/sub",  # the work of a sub-agent, whose run has no span
    "langfuse-5-observe/refund",  # arguments without names, written as a JSON list
}
SEVERAL = [
    path for path in EVERY[:: len(EVERY) // 12] if str(path.relative_to(CAPTURES)) not in DIFFERENT
]
KINDS: dict[str, CallKind] = {
    "a_tool": "function",
    "to_another": "handoff",
    "an_agent": "agent",
    "final_answer": "final_answer",
}
NAMES = (
    "tool_trajectory_avg_score",
    "tool_trajectory_f1",
    "trajectory_similarity",
    "argument_accuracy",
    "tool_error_rate",
    "total_tokens",
    "latency",
    "failure",
)
SCORERS: Mapping[str, Scorer] = {name: scorer_class(name)() for name in NAMES}


def evaluations(directory: Path) -> tuple[Evaluation, ...]:
    [one] = replay([directory], Evaluator(()), ReferenceSet(), DEFAULT_KEYS)
    return one.evaluations


def read_again(spans: Iterable[Span]) -> list[Invocation]:
    files = TraceFiles(spans=list(spans))
    replayed = replay_files(files, Path("-"), Evaluator(()), ReferenceSet(), DEFAULT_KEYS)
    return [evaluation.invocation for evaluation in replayed.evaluations]


def view(one: Invocation) -> dict[str, Any]:
    """What people and scorers see, except the ids of calls that had none."""
    names = (
        *("span_id", "agent", "agent_version", "scenario_id", "conversation_id", "user_id"),
        *("run_id", "turn", "user_input", "final_response", "error", "error_type", "model"),
        *("input_tokens", "output_tokens", "start_ns", "end_ns"),
    )
    return {
        **{name: getattr(one, name) for name in names},
        "calls": [
            (call.name, call.arguments, call.result, call.error, call.kind, call.agent)
            for call in one.tool_calls
        ],
        "models": [
            (call.span_id, call.model, call.input_tokens, call.output_tokens, call.error)
            for call in one.model_calls
        ],
        "sub_agents": [
            (run.span_id, run.agent, run.parent, run.via, run.user_input, run.final_response)
            for run in one.sub_agents
        ],
        "session_end": one.session_end,
        "flags": one.flags,
    }


def scores(one: Invocation) -> dict[str, Any]:
    """Against an expectation that parts of each trajectory miss."""
    calls = tuple(ExpectedCall(call.name, {}) for call in one.tool_calls[1:])
    turn = ReferenceTurn(tool_calls=(*calls, ExpectedCall("lookup_order", {"order_id": "1"})))
    return {name: scorer.score(one, turn) for name, scorer in SCORERS.items()}


def check(directory: Path) -> None:
    sent, rebuilt = [], []
    for evaluation in evaluations(directory):
        stored = decode(encode(evidence_of(evaluation)))
        sent.append(stored.invocation)
        rebuilt += trace_of(stored)
    again = {one.span_id: one for one in read_again(rebuilt)}
    assert {one.span_id: view(one) for one in sent} == {
        key: view(one) for key, one in again.items()
    }
    assert [scores(one) for one in sent] == [scores(again[one.span_id]) for one in sent]


@pytest.mark.parametrize("directory", SEVERAL, ids=lambda path: str(path.relative_to(CAPTURES)))
def test_the_rebuilt_trace_of_a_framework_has_the_same_content_and_scores(directory: Path) -> None:
    check(directory)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("directory", EVERY, ids=lambda path: str(path.relative_to(CAPTURES)))
def test_the_rebuilt_trace_of_every_capture_has_the_same_content_and_scores(
    directory: Path,
) -> None:
    if str(directory.relative_to(CAPTURES)) not in DIFFERENT:
        check(directory)


def invocation(*calls: ToolCall, **fields: Any) -> Invocation:
    asked = ModelCall(span_id("model"), "a", span_id("entry"), "m", 3, 4, None, 1_000, 2_000)
    values = {"agent": "a", "model_calls": (asked,), "start_ns": 500, "end_ns": 9_000, **fields}
    return Invocation(trace_id("t"), span_id("entry"), "genai", tool_calls=calls, **values)


def rebuilt(one: Invocation) -> Invocation:
    [found] = read_again(trace_of(Evidence(one)))
    return found


def test_hostile_names_and_values_stay_text() -> None:
    name = "a\x00b\ud800 <script>\n" + "x" * 5_000
    call = ToolCall(name, {name: [name, {"k": None}]}, "1", result=name, group=0, start_ns=1_500)
    found = rebuilt(invocation(call, scenario_id=name, user_input=name, final_response=name))
    sent = name.replace("\ud800", "?")
    assert (found.scenario_id, found.user_input, found.final_response) == (sent, sent, sent)
    [again] = found.tool_calls
    assert (again.name, again.result) == (sent, sent)
    assert again.arguments == {sent: [sent, {"k": None}]}


@pytest.mark.parametrize("flag", get_args(Flag))
def test_what_the_telemetry_lacked_is_still_known(flag: Flag) -> None:
    lacking = invocation(ToolCall("f", {}, "1", group=0), flags=frozenset({flag, "redacted"}))
    assert rebuilt(lacking).flags == {flag, "redacted"}
    assert rebuilt(replace(lacking, flags=frozenset())).flags == frozenset()


def test_lost_calls_do_not_become_a_shorter_trajectory() -> None:
    lost = invocation(ToolCall("f", {}, "1", group=0), flags=frozenset({"lost_tool_calls"}))
    assert recorded_turn(rebuilt(lost), RecordOptions())[0].tool_calls is None


def test_only_rebuilt_spans_state_flags() -> None:
    spans = trace_of(Evidence(invocation(flags=frozenset({"lost_tool_calls"}))))
    foreign = [Span(one.raw, one.resource, Scope("agent"), one.tenant) for one in spans]
    [found] = read_again(foreign)
    assert "lost_tool_calls" not in found.flags


def test_redaction_after_the_export_is_known() -> None:
    entry, *others = trace_of(Evidence(invocation(user_input="ask ann@example.org")))
    redactor = Redactor(Rules(), {}, b"salt", installed_dialects())
    [found] = read_again(redactor.spans([entry, *others]).records)
    assert found.flags == {"redacted"}
    redactor = Redactor(Rules(content=False), {}, b"salt", installed_dialects())
    lost = trace_of(Evidence(invocation(flags=frozenset({"lost_tool_calls"}))))
    [found] = read_again(redactor.spans(lost).records)
    assert "lost_tool_calls" in found.flags


def test_how_the_session_ended_is_kept() -> None:
    for outcome in ("resolved", "ended", None):
        assert rebuilt(invocation(session_end=outcome)).session_end == outcome


@pytest.mark.parametrize("name", ["refund", "a b;c,d=é%41\n\ud800"])
def test_the_scenario_is_found_whatever_attributes_the_configuration_names(name: str) -> None:
    spans = trace_of(Evidence(invocation(scenario_id=name)))
    files = TraceFiles(spans=list(spans))
    replayed = replay_files(files, Path("-"), Evaluator(()), ReferenceSet(), ("case",))
    [evaluation] = replayed.evaluations
    assert evaluation.invocation.scenario_id == name.replace("\ud800", "?")


def test_calls_that_were_not_recorded_stay_unknown() -> None:
    found = rebuilt(invocation(flags=frozenset({"no_tool_spans"}), final_response="done"))
    assert (found.tool_calls, found.final_response) == ((), "done")
    assert "no_tool_spans" in found.flags


def test_an_answer_that_is_empty_and_one_that_is_unknown_differ() -> None:
    assert rebuilt(invocation(final_response="")).final_response == ""
    assert rebuilt(invocation(final_response=None)).final_response is None


def test_tokens_that_only_the_agent_states_are_kept() -> None:
    asked = ModelCall(span_id("model"), "a", span_id("entry"), "m", start_ns=1_000, end_ns=2_000)
    found = rebuilt(invocation(model_calls=(asked,), input_tokens=7, output_tokens=9))
    assert (found.input_tokens, found.output_tokens) == (7, 9)


def test_the_kinds_of_calls_are_kept() -> None:
    calls = [
        ToolCall(name, {}, f"{at}", kind=kind, group=0, start_ns=2_000 + at, end_ns=2_100 + at)
        for at, (name, kind) in enumerate(KINDS.items())
    ]
    assert {one.name: one.kind for one in rebuilt(invocation(*calls)).tool_calls} == KINDS


def test_what_models_said_between_calls_is_kept_apart_from_the_answer() -> None:
    first, last = (
        ModelCall(
            span_id(f"model {at}"), "a", span_id("entry"), "m", 1, 1, None, at, at + 1, text=text
        )
        for at, text in ((1_000, "I look it up."), (3_000, "Thinking aloud."))
    )
    evidence = Evidence(invocation(model_calls=(first, last), final_response="Done."))
    spans = trace_of(evidence)
    said = [one.attributes.get("gen_ai.output.messages") for one in spans if "chat" in one.name]
    assert ["I look it up." in str(said[0]), "Done." in str(said[1])] == [True, True]
    [found] = read_again(spans)
    assert found.final_response == "Done."


def test_rebuilt_spans_are_marked_and_have_the_same_ids_each_time() -> None:
    evidence = Evidence(invocation(ToolCall("f", {}, group=0, start_ns=1_500), tenant="north"))
    spans = trace_of(evidence)
    assert spans == trace_of(evidence)
    assert {(one.scope.name, one.tenant, one.trace_id) for one in spans} == {
        ("pathgauge.evidence", "north", trace_id("t"))
    }
    assert len({one.span_id for one in spans}) == len(spans) == 3

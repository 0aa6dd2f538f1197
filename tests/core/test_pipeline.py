"""From spans to evaluations: matching, revisions, withdrawals, conversations, and counters."""

from __future__ import annotations

import json
from random import Random

from hypothesis import given, settings, strategies as st

from pathgauge import ToolTrajectoryF1
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, Withdrawn
from pathgauge.collector.core.published import PublishedTrace
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.testing import log, span, span_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import ExpectedCall, Invocation, Reference, ReferenceTurn
from support.arrival import final_invocations
from support.dialects import INSTALLED
from support.examples import examples

CRITERIA = (Criterion("f1", ToolTrajectoryF1(), 1.0), Criterion("failure", Failure(), None))
LOOKUP = ReferenceTurn(tool_calls=(ExpectedCall("lookup"),))
REFUND = ReferenceTurn(tool_calls=(ExpectedCall("refund"),))
REFERENCES = ReferenceSet([Reference("single", (LOOKUP,)), Reference("dialogue", (LOOKUP, REFUND))])


def pipeline(
    criteria: tuple[Criterion, ...] = CRITERIA, bounds: Bounds | None = None
) -> tuple[Pipeline, InternalTelemetry]:
    telemetry = InternalTelemetry()
    return Pipeline(
        INSTALLED, Evaluator(criteria), REFERENCES, telemetry, bounds, conversation_idle=100
    ), telemetry


def agent(
    name: str,
    tools: list[str],
    scenario: str = "",
    conversation: str = "",
    *,
    turn: int | None = None,
    start: float = 0,
    parent: str | None = None,
) -> list[Span]:
    """An agent span in a trace of the same name, with one tool span for each of `tools`."""
    given = {
        "test.case.id": scenario,
        "gen_ai.conversation.id": conversation,
        "pathgauge.turn": turn,
    }
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        **{key: value for key, value in given.items() if value not in ("", None)},
    }
    root = span(
        name, "invoke_agent a", attributes, trace=name, start=start, end=start + 9, parent=parent
    )
    return [root, *(tool(name, t, start + 1 + i) for i, t in enumerate(tools))]


def tool(of: str, name: str, start: float = 1, *, trace: str | None = None) -> Span:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": json.dumps({}),
    }
    return span(
        f"{of}/{name}",
        f"execute_tool {name}",
        attributes,
        trace=trace or of,
        parent=of,
        start=start,
        end=start + 0.5,
    )


def run(core: Pipeline, spans: list[Span], now: float = 0) -> list[PipelineEvent]:
    """Feed at `now`, then let `settle` pass."""
    return core.feed(spans, (), now) + core.expire(now + 6)


def f1(outcomes: list[PipelineEvent]) -> list[tuple[int, float | None]]:
    """Revision and F1 of every evaluation."""
    evaluations = [outcome for outcome in outcomes if isinstance(outcome, Evaluation)]
    return [
        (e.revision, next((r.score.value for r in e.results if r.criterion.name == "f1"), None))
        for e in evaluations
    ]


def test_an_invocation_is_scored_against_the_reference_of_its_scenario() -> None:
    core, _ = pipeline()
    [evaluation] = run(core, agent("a", ["lookup"], "single"))
    assert isinstance(evaluation, Evaluation)
    assert [(r.criterion.name, r.score.value, r.verdict) for r in evaluation.results] == [
        ("f1", 1.0, "passed"),
        ("failure", 0.0, "informational"),
    ]


def test_without_a_scenario_only_criteria_without_reference_are_scored() -> None:
    core, telemetry = pipeline()
    [evaluation] = run(core, agent("a", ["lookup"]))
    assert isinstance(evaluation, Evaluation)
    assert [r.criterion.name for r in evaluation.results] == ["failure"]
    assert telemetry.invocations_unmatched.items() == [(("no_scenario_id",), 1)]


def test_a_late_span_revises_the_evaluation_and_counts_it_once() -> None:
    core, telemetry = pipeline()
    root, lookup = agent("a", ["lookup"], "single")
    first, second = run(core, [root]), run(core, [lookup], 50)
    assert f1(first) + f1(second) == [(0, None), (1, 1.0)]
    assert (
        telemetry.invocations_read.total(),
        telemetry.invocations_scored.total(),
        telemetry.revisions.total(),
    ) == (1, 1, 1)


def test_an_invocation_of_a_busy_trace_is_counted_once_however_many_others_are_read() -> None:
    core, telemetry = pipeline(bounds=Bounds(max_forgotten=2))
    events = core.feed(agent("a", ["lookup"], "single", parent="server"), (), 0)
    server = span("server", "POST /", trace="a", end=100)
    for now in range(1, 30):
        busy = span(f"work {now}", "work", trace="a", parent="server", start=now, end=now + 1)
        events += core.feed([server, busy, *agent(f"other {now}", [])], (), now)
        events += core.expire(now)
    events += core.expire(100)
    of_busy = [e for e in events if isinstance(e, Evaluation) and e.scenario_id == "single"]
    assert [evaluation.revision for evaluation in of_busy] == [0]
    assert telemetry.invocations_read.total() == 30
    assert telemetry.traces_completed.total() == 30


def test_a_late_span_revises_a_turn_with_its_number_when_its_conversation_has_ended() -> None:
    core, _ = pipeline()
    run(core, agent("a", ["lookup"], "dialogue", "c"))
    run(core, agent("b", ["refund"], "dialogue", "c", start=20), 20)
    run(core, agent("x", ["sing"], "dialogue", "c", start=40), 30)
    [ended] = [e for e in core.expire(140) if isinstance(e, ConversationResult)]
    assert (ended.matched, ended.missing, ended.unexpected) == (2, 0, 1)
    [(revision, score)] = f1(run(core, [tool("b", "lookup", 22)], 200))
    assert (revision, score) == (1, 2 / 3)
    [unexpected] = run(core, [tool("x", "dance", 42)], 210)
    assert isinstance(unexpected, Evaluation)
    assert (unexpected.revision, unexpected.match.unmatched) == (1, "unexpected_turn")
    assert core.expire(1000) == []


def test_a_late_span_does_not_count_a_turn_again_that_its_conversation_has_no_room_for() -> None:
    core, telemetry = pipeline()
    for number in range(8):
        run(core, agent(f"turn {number}", [], "dialogue", "c", start=10 * number), number)
    run(core, agent("one too many", [], "dialogue", "c", start=200), 10)
    assert run(core, [tool("one too many", "lookup", 201)], 20) != []
    assert run(core, [tool("one too many", "refund", 202)], 60) != []
    core.expire(1000)
    assert telemetry.case_turns.get("unexpected") == 7


def test_a_late_span_that_changes_nothing_is_no_revision() -> None:
    core, telemetry = pipeline()
    run(core, agent("a", ["lookup"], "single"))
    assert run(core, [span("http", "GET /", trace="a", parent="a")], 50) == []
    assert telemetry.revisions.total() == 0


def test_late_tool_definitions_cause_a_revision_only_if_they_differ() -> None:
    core, telemetry = pipeline()
    chat = span(
        "chat", "chat", {"gen_ai.operation.name": "chat"}, trace="a", parent="a", start=1, end=2
    )
    assert f1(run(core, [*agent("a", ["lookup"], "single"), chat])) == [(0, 1.0)]
    for time, revisions in ((10, 1), (20, 0)):
        tools = {
            "gen_ai.tool.definitions": [
                {"name": "lookup", "parameters": {"type": "object", "properties": {}}}
            ]
        }
        late = log(
            "gen_ai.client.inference.operation.details", tools, trace="a", span="chat", time=time
        )
        assert len(core.feed((), [late], time) + core.expire(time + 6)) == revisions
    assert telemetry.revisions.total() == 1


def test_an_agent_that_turns_out_to_be_a_sub_agent_is_withdrawn() -> None:
    core, telemetry = pipeline()
    outer = span(
        "outer",
        "invoke_agent outer",
        {"gen_ai.operation.name": "invoke_agent", "test.case.id": "single"},
        trace="a",
        end=20,
    )
    core.feed(agent("a", ["lookup"], "single", parent="outer"), (), 0)
    early = core.expire(30)
    late = run(core, [outer], 40)
    assert f1(early) == [(0, 1.0)]
    assert late[0] == Withdrawn(("", outer.trace_id, span_id("a")))
    assert f1(late) == [(0, 1.0)]
    assert telemetry.withdrawn.total() == 1


def test_an_agent_that_never_arrived_is_withdrawn_when_another_one_explains_its_spans() -> None:
    core, telemetry = pipeline()
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    orphan = span("chat", "chat m", chat, trace="a", parent="lost", start=1, end=2)
    core.feed([orphan], (), 0)
    [early] = core.expire(30)
    late = run(core, agent("a", [], parent="other"), 31) + core.expire(70)
    assert isinstance(early, Evaluation)
    assert "missing_root" in early.invocation.flags
    assert late[0] == Withdrawn(early.key)
    assert [one.key for one in late if isinstance(one, Evaluation)] == [
        ("", orphan.trace_id, span_id("a"))
    ]
    assert telemetry.withdrawn.total() == 1


SPANS = st.lists(
    st.tuples(
        st.sampled_from(["invoke_agent a", "invoke_agent b", "chat m", "execute_tool t", "POST"]),
        st.integers(0, 8),
        st.integers(0, 50),
        st.integers(0, 30),
        st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=examples(300))
@given(SPANS, st.randoms(), st.sampled_from([0.0, 7.0, 31.0]))
def test_the_invocations_of_a_trace_do_not_depend_on_when_its_spans_arrive(
    described: list[tuple[str, int, int, int, bool]], chance: Random, pause: float
) -> None:
    spans: list[Span | LogRecord] = [
        span(
            str(number),
            name,
            {"gen_ai.operation.name": name.split()[0]},
            parent=None if above == 8 else str(above),  # which may be later, or never arrive
            start=start,
            end=start + length,
            remote_parent=remote,
        )
        for number, (name, above, start, length, remote) in enumerate(described)
    ]

    def view(arriving: list[Span | LogRecord], batch: int) -> list[tuple[str, list[str]]]:
        found = final_invocations(arriving, batch, pause)
        return [(one.span_id, [call.name for call in one.tool_calls]) for one in found]

    at_once = view(spans, len(spans))
    chance.shuffle(spans)
    assert view(spans, 1) == at_once


def test_turns_are_numbered_by_start_time_in_any_order_of_arrival() -> None:
    core, _ = pipeline()
    second = agent("t2", ["refund"], "dialogue", "c", start=20)
    first = agent("t1", ["lookup"], "dialogue", "c")
    assert f1(run(core, second)) == [(0, 0.0)]
    assert f1(run(core, first, 10)) == [(0, 1.0), (1, 1.0)]


def test_a_finished_conversation_scores_its_missing_and_unexpected_turns_as_zero() -> None:
    core, telemetry = pipeline()
    run(core, agent("t1", ["lookup"], "dialogue", "short"))
    for turn, tools in enumerate((["lookup"], ["refund"], ["lookup"])):
        run(core, agent(f"u{turn}", tools, "dialogue", "long", start=20.0 * turn), 1)
    cases = [outcome for outcome in core.expire(200) if isinstance(outcome, ConversationResult)]
    assert [
        (
            c.conversation_id,
            c.matched,
            c.missing,
            c.unexpected,
            [(s.criterion.name, s.value) for s in c.scores],
        )
        for c in cases
    ] == [
        ("short", 1, 1, 0, [("f1", 0.5)]),
        ("long", 2, 0, 1, [("f1", 2 / 3)]),
    ]
    assert telemetry.case_turns.items() == [
        (("matched",), 3),
        (("missing",), 1),
        (("unexpected",), 1),
    ]


def test_a_turn_without_conversation_id_is_unmatched() -> None:
    core, telemetry = pipeline()
    run(core, agent("a", ["lookup"], "dialogue"))
    assert telemetry.invocations_unmatched.items() == [(("no_conversation_id",), 1)]


def test_a_turn_with_its_own_number_needs_no_conversation_id() -> None:
    core, _ = pipeline()
    assert f1(run(core, agent("a", ["refund"], "dialogue", turn=1))) == [(0, 1.0)]


def test_configure_applies_new_criteria() -> None:
    core, _ = pipeline()
    core.configure(
        Evaluator((Criterion("strict", ToolTrajectoryF1(match_mode="name_and_args"), 0.5),)),
        REFERENCES,
    )
    [evaluation] = run(core, agent("a", ["lookup"], "single"))
    assert isinstance(evaluation, Evaluation)
    assert [r.criterion.name for r in evaluation.results] == ["strict"]


def test_the_counters_balance_at_every_stage() -> None:
    core, telemetry = pipeline(CRITERIA[:1], Bounds(max_trace_spans=3))
    sent = [
        *agent("matched", ["lookup"], "single"),
        *agent("matched", ["lookup"], "single"),
        *agent("unmatched", ["lookup"]),
        *agent("unknown", ["lookup"], "nobody knows"),
        *agent("torn", ["lookup"], "single"),
        *agent("big", ["a", "b", "c", "d"], "single"),
        span("http", "GET /", trace="http"),
        span(
            "cut",
            "invoke_agent a",
            {"gen_ai.operation.name": "invoke_agent"},
            trace="cut",
            parent="never",
        ),
        tool("cut", "lookup"),
    ]
    core.feed(sent, (), 0)
    core.expire(6)
    core.feed([tool("matched", "refund", 5)], (), 50)
    core.expire(60)
    core.drain(61)
    assert len(sent) + 1 == telemetry.spans_assembled.total() + telemetry.spans_dropped.total()
    assert telemetry.traces_opened.total() == telemetry.traces_completed.total() == 7
    assert telemetry.traces_skipped.items() == [(("no_agent_spans",), 1)]
    assert (
        telemetry.invocations_read.total()
        == telemetry.invocations_scored.total() + telemetry.invocations_skipped.total()
        == 6
    )
    assert dict(telemetry.invocations_skipped.items()) == {
        ("no_scenario_id",): 2,
        ("unknown_scenario",): 1,
        ("not_evaluated",): 1,
    }


def test_spans_that_no_dialect_understands_are_counted_once_by_scope() -> None:
    def step(name: str, scope: str, trace: str, **attributes: str) -> Span:
        return span(f"{trace}/{name}", name, attributes, trace=trace, scope=scope)

    core, telemetry = pipeline()
    core.feed(
        [
            *agent("understood", ["lookup"]),
            step("run", "acme\n", "acme", **{"acme.tool.name": "lookup"}),
            step("GET /agents", "http", "acme", **{"user_agent.original": "agent/1"}),
            step("compile", "make", "acme", **{"build.tool": "cc"}),
            step("ask", "", "acme", **{"acme.llm.prompt": "Where is it?"}),
        ],
        (),
        0,
    )
    core.expire(60)
    core.feed([step("late", "acme\n", "acme", **{"acme.tool.name": "lookup"})], (), 61)
    core.drain(120)
    assert dict(telemetry.unread_scopes.items()) == {("acme?",): 1, ("unnamed",): 1}


def test_scopes_beyond_the_limit_are_counted_together() -> None:
    core, telemetry = pipeline()
    core.feed(
        [
            span(f"{n}", "run", {"acme.tool.name": "t"}, trace="t", start=n, scope=f"acme.{n:02}")
            for n in range(23)
        ],
        (),
        0,
    )
    core.drain(60)
    assert dict(telemetry.unread_scopes.items()) == {
        **{(f"acme.{n:02}",): 1 for n in range(20)},
        ("__other__",): 3,
    }


def test_an_unreadable_trace_does_not_affect_others() -> None:
    core, telemetry = pipeline()
    deep = '{"a":' * 1000 + "1" + "}" * 1000
    hostile = [
        *agent("bad", [], "single"),
        span(
            "t",
            "execute_tool lookup",
            {"gen_ai.tool.call.arguments": deep},
            trace="bad",
            parent="bad",
        ),
    ]
    negative = agent("odd", ["lookup"], "dialogue", turn=-5)
    evaluations = [
        one
        for one in run(core, [*hostile, *negative, *agent("good", ["lookup"], "single")])
        if isinstance(one, Evaluation)
    ]
    assert (1.0, "passed") in [
        (r.score.value, r.verdict)
        for e in evaluations
        for r in e.results
        if r.criterion.name == "f1"
    ]
    assert telemetry.invocations_read.total() == len(evaluations) == 3
    assert dict(telemetry.invocations_unmatched.items()) == {("no_conversation_id",): 1}


def test_an_incomplete_turn_below_an_ended_root_is_not_evaluated() -> None:
    core, _ = pipeline()
    half = [
        span("http", "POST /chat", trace="a", end=0.1),
        *agent("a", ["lookup"], "single", parent="http")[1:],
    ]
    assert run(core, half) == []
    whole = core.feed(agent("a", [], "single", parent="http"), (), 20) + core.expire(26)
    assert f1(whole) == [(0, 1.0)]


def test_an_invocation_without_its_own_span_is_not_evaluated() -> None:
    core, telemetry = pipeline(CRITERIA[:1])
    lost = [
        tool("lost", "lookup"),
        span(
            "m",
            "chat",
            {"gen_ai.operation.name": "chat", "test.case.id": "single"},
            trace="lost",
            parent="lost",
        ),
    ]
    core.feed(lost, (), 0)
    [evaluation] = core.expire(30)
    assert isinstance(evaluation, Evaluation)
    assert [(r.score.value, r.score.reason, r.verdict) for r in evaluation.results] == [
        (None, "incomplete", "not_evaluated")
    ]
    assert telemetry.invocations_skipped.items() == [(("not_evaluated",), 1)]


def test_a_shared_conversation_id_takes_bounded_memory_and_renumbers_no_turns() -> None:
    core, telemetry = pipeline()
    for number in range(20):
        run(
            core,
            agent(f"t{number}", ["lookup"], "dialogue", "always the same", start=20.0 * number),
        )
    assert telemetry.revisions.total() == 0
    assert dict(telemetry.invocations_unmatched.items()) == {("unexpected_turn",): 18}
    [case] = [outcome for outcome in core.expire(200) if isinstance(outcome, ConversationResult)]
    assert (case.matched, case.missing, case.unexpected) == (2, 0, 18)


def test_a_late_span_that_changes_the_scenario_of_a_turn_takes_it_out_of_its_conversation() -> None:
    core, telemetry = pipeline()
    root, lookup = agent("t1", ["lookup"], conversation="c", parent="outer")
    below = span("below", "inside", {"test.case.id": "dialogue"}, trace="t1", parent="t1")
    core.feed([root, lookup, below], (), 0)
    assert f1(core.expire(30)) == [(0, 1.0)]
    assert [turn.number for turn in core.changes().turns] == [0]
    outer = span("outer", "POST /chat", {"test.case.id": "single"}, trace="t1", end=9)
    assert f1(run(core, [outer], 40)) == [(1, 1.0)]
    assert core.changes().orphaned_turns == (("", root.trace_id, root.span_id),)
    assert (core.drain(50), telemetry.invocations_read.total()) == ([], 1)


def test_a_turn_is_counted_once_even_if_its_trace_is_known_no_more() -> None:
    core, telemetry = pipeline(bounds=Bounds(max_forgotten=0))
    root, lookup = agent("t1", ["lookup"], "dialogue", "c")
    assert f1(run(core, [root])) == [(0, None)]
    assert f1(run(core, [lookup], 20)) == [(1, 1.0)]
    assert f1(run(core, agent("t0", ["lookup"], "dialogue", "c", start=-20), 40)) == [
        (0, 1.0),
        (2, 0.0),
    ]
    assert telemetry.invocations_read.total() == 2


def test_the_numbers_of_revisions_never_go_back() -> None:
    published, invocation = PublishedTrace(read_at=0.0), Invocation("t", "s", "test")
    revisions = [published.add(invocation, after) for after in (-1, 5, -1, 2)]
    assert revisions == [0, 6, 7, 8]

"""What an agent version has shown tells its silence from telemetry that lacks something."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.agent_records import AgentRecords, VersionKey
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations.reading import RECORDS, Reading, Record
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.testing import trace_id
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import Invocation, Reference
from support.by_hand import INPUT, REASONS, invocation, text
from support.dialects import INSTALLED
from support.examples import examples

CRITERIA = (
    Criterion("trajectory", ToolTrajectoryAvgScore(), 0.5),
    Criterion("response", ResponseMatchScore(), 0.5),
)
TURN = reference_turn(*expected_calls("look"), response="Done.")
REFERENCES = ReferenceSet([Reference("s", (TURN,))])
HOUR = 3600.0

EMPTY: dict[str, Any] = {
    "answer": None,
    "chats": [{INPUT: text("user", "Refund it."), REASONS: ["stop"]}],
}
"""An invocation that leaves its answer out and calls no tool."""


def pipeline(**options: Any) -> Pipeline:
    return Pipeline(INSTALLED, Evaluator(CRITERIA), REFERENCES, InternalTelemetry(), **options)


def spans(*tools: str, trace: str, **more: Any) -> list[Span]:
    return invocation(*tools, trace=trace, scenario="s", **more)


def scores(events: Iterable[Any]) -> dict[str, dict[str, float | str | None]]:
    """By trace: the newest scores, or the reasons why there are none."""
    names = {trace_id(str(number)): str(number) for number in range(200)}
    return {
        names[event.key[1]]: {
            one.criterion.name: one.score.reason or one.score.value for one in event.results
        }
        for event in events
        if isinstance(event, Evaluation)
    }


def trajectories(events: Iterable[Any]) -> dict[str, float | str | None]:
    return {trace: one["trajectory"] for trace, one in scores(events).items()}


def in_turn(flow: Pipeline, *traces: list[Span], at: float = 0.0) -> dict[str, Any]:
    """The trajectory scores of traces that are read one after the other, a minute apart."""
    events: list[Any] = []
    for number, trace in enumerate(traces):
        events += flow.feed(trace, (), at + 60 * number)
        events += flow.expire(at + 60 * number + 59)
    return trajectories(events)


def test_an_agent_that_stops_calling_tools_scores_0() -> None:
    assert in_turn(pipeline(), spans("look", trace="0"), spans(trace="1")) == {"0": 1.0, "1": 0.0}


def test_an_agent_that_never_called_a_tool_has_no_score() -> None:
    found = in_turn(pipeline(), spans(trace="0"), spans(trace="1"))
    assert set(found.values()) == {"tools_not_recorded"}


def test_what_was_read_before_is_not_scored_again() -> None:
    found = in_turn(pipeline(), spans(trace="0"), spans("look", trace="1"), spans(trace="2"))
    assert found == {"0": "tools_not_recorded", "1": 1.0, "2": 0.0}


def test_an_answer_that_is_left_out_scores_0_once_the_version_has_answered() -> None:
    flow = pipeline()
    events = [*flow.feed(spans(trace="0", **EMPTY), (), 0.0), *flow.expire(59)]
    events += [*flow.feed(spans(trace="1"), (), 60.0), *flow.expire(119)]
    events += [*flow.feed(spans(trace="2", **EMPTY), (), 120.0), *flow.expire(179)]
    assert {trace: one["response"] for trace, one in scores(events).items()} == {
        "0": "response_not_recorded",
        "1": 1.0,
        "2": 0.0,
    }


@pytest.mark.parametrize(
    "other",
    [
        {"version": "2.0"},
        {"name": "other_agent"},
        {"tenant": "b"},
        {"version": ""},
    ],
    ids=str,
)
def test_each_version_of_each_agent_of_each_tenant_is_known_for_itself(other: Any) -> None:
    known = {"version": "1.0", "name": "refund_agent", "tenant": "a"}
    found = in_turn(
        pipeline(),
        spans("look", trace="0", **known),
        spans(trace="1", **known | other),
        spans(trace="2", **known),
    )
    assert found == {"0": 1.0, "1": "tools_not_recorded", "2": 0.0}


def test_agents_without_a_name_are_not_known() -> None:
    """They may be different agents."""
    unnamed = {"name": "", "agent": {"gen_ai.agent.name": ""}}
    found = in_turn(pipeline(), spans("look", trace="0", **unnamed), spans(trace="1", **unnamed))
    assert found == {"0": 1.0, "1": "tools_not_recorded"}


def test_invocations_of_synthetic_tenants_teach_nothing() -> None:
    flow = pipeline(synthetic_tenants=frozenset({"(canary)"}))
    canary = {"tenant": "(canary)"}
    found = in_turn(flow, spans("look", trace="0", **canary), spans(trace="1", **canary))
    assert found == {"0": 1.0, "1": "tools_not_recorded"}
    assert flow.records.pending() == []


def test_all_traces_of_a_file_are_known_before_the_first_is_scored() -> None:
    traces = [spans(trace="0"), spans("look", trace="1"), spans(trace="2", **EMPTY)]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        flow = pipeline()
        for number in order:
            flow.feed(traces[number], (), 0.0)
        assert scores(flow.read_open(0.0)) == {
            "0": {"trajectory": 0.0, "response": 1.0},
            "1": {"trajectory": 1.0, "response": 1.0},
            "2": {"trajectory": 0.0, "response": 0.0},
        }


def test_invocations_of_one_trace_settle_each_other() -> None:
    """The first turn of the trace called no tool."""
    first, *below = spans(trace="0", start=0)
    second = spans("look", trace="0 later", start=20)
    moved = [_moved(one, first.trace_id) for one in second]
    flow = pipeline()
    events = [*flow.feed([first, *below, *moved], (), 0.0), *flow.expire(59)]
    values = [event.results[0].score.value for event in events if isinstance(event, Evaluation)]
    assert set(values) == {0.0, 1.0}


def _moved(span: Span, trace: str) -> Span:
    proto = type(span.proto).FromString(span.raw)
    proto.trace_id = bytes.fromhex(trace)
    return Span(proto.SerializeToString(), span.resource, span.scope)


def reading(agent: str, *shown: Record, version: str = "1", tenant: str = "") -> Reading:
    invocation = Invocation("t", "s", "d", tenant=tenant, agent=agent, agent_version=version)
    return Reading(invocation, frozenset(shown))


def stored(records: AgentRecords) -> dict[tuple[str, ...], Any]:
    """What `pending` gives to the store, as the store keeps it."""
    return {tuple(key): state for key, state in json.loads(json.dumps(records.pending()))}


def kept(records: AgentRecords) -> set[str]:
    records.commit()
    return {key.agent for key in records.shown()}


def test_only_what_changed_is_stored_and_a_busy_version_once_an_hour() -> None:
    records = AgentRecords()
    records.learn([reading("a", "tools", "usage")], 0.0)
    key = ("agent_records", "", "a", "1")
    assert stored(records) == {key: [0, 1, 0, 0, 0, 0, 1, 0]}
    records.commit()
    records.learn([reading("a", "tools"), reading("a")], HOUR - 1)
    assert stored(records) == {}
    records.learn([reading("a", "responses")], HOUR - 1)
    assert stored(records) == {key: [0, 1, 0, 0, 0, 1, 1, 0]}
    records.commit()
    records.learn([reading("a", "tools")], HOUR)
    assert stored(records) == {key: [1, 1, 0, 0, 0, 1, 1, 0]}


def test_scrapes_see_what_is_committed() -> None:
    records = AgentRecords()
    records.learn([reading("a", "tools")], 0.0)
    assert records.shown() == {}
    records.pending()
    records.commit()
    assert records.shown() == {VersionKey("", "a", "1"): {"tools"}}


def test_the_versions_that_were_not_seen_for_longest_are_forgotten() -> None:
    records = AgentRecords(max_versions=20)
    for number in range(20):
        records.learn([reading(f"{number:02}", "tools")], number * HOUR)
    records.commit()
    records.learn([reading("00", "tools")], 20 * HOUR)
    records.learn([reading("new", "tools")], 20 * HOUR)
    forgotten = {key[2] for key, state in stored(records).items() if state is None}
    assert forgotten == {"01", "02", "03"}
    assert kept(records) == {"00", "new", *(f"{number:02}" for number in range(4, 20))}


def test_agents_that_one_tenant_invents_are_not_forgotten_agents_of_another() -> None:
    records = AgentRecords(max_versions=20)
    records.learn([reading("known", "tools", tenant="a")], 0.0)
    for number in range(1000):
        records.learn([reading(f"{number}", "tools", tenant="b")], number * HOUR)
    assert "known" in kept(records)
    assert len(records.shown()) <= 1 + 20


def test_an_invocation_that_shows_nothing_is_not_kept() -> None:
    records = AgentRecords()
    records.learn([reading("a")], 0.0)
    assert records.pending() == []


@pytest.mark.parametrize("name", ["x" * 10_000, "é" * 10_000, "\ud800", "𐍈" * 40])
def test_any_name_can_be_stored_and_is_bounded(name: str) -> None:
    records = AgentRecords()
    records.learn([reading(name, "tools", version=name)], 0.0)
    [(key, _)] = stored(records).items()
    assert max(len(part.encode()) for part in key) <= 128
    doubtful = reading(name, version=name)
    assert records.settled(doubtful) is doubtful.invocation


def test_rows_of_other_names_and_later_versions_are_ignored() -> None:
    records = AgentRecords()
    records.restore(
        [
            Row(("pathgauge_invocations", "", "a", "1"), [5]),
            Row(("agent_records", "a"), [0, 1]),
            Row(("agent_records", "", "gone", "1"), None),
            Row(("agent_records", "", "older", "1"), [3, 1]),
            Row(("agent_records", "", "newer", "1"), [3, *(1 for _ in RECORDS), 1, 1]),
        ]
    )
    assert records.shown() == {
        VersionKey("", "older", "1"): {"tools"},
        VersionKey("", "newer", "1"): set(RECORDS),
    }


def test_a_lower_limit_applies_to_what_was_stored() -> None:
    rows = [Row(("agent_records", "", f"{number:02}", "1"), [number, 1]) for number in range(50)]
    Random(7).shuffle(rows)
    records = AgentRecords(max_versions=20)
    records.restore(rows)
    assert {key.agent for key in records.shown()} == {str(number) for number in range(32, 50)}
    assert sum(row.state is None for row in records.pending()) == 32


steps = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"),
        st.sets(st.sampled_from(RECORDS), min_size=1),
        st.floats(0, 3 * HOUR),
        st.booleans(),
    ),
    max_size=40,
)


@settings(max_examples=examples(200), deadline=None)
@given(steps)
def test_a_restart_at_any_commit_changes_nothing(course: list[Any]) -> None:
    """`course`: an agent that shows something, the pause before, whether a restart follows."""
    steady, now = AgentRecords(max_versions=5), 0.0
    restarted, rows = AgentRecords(max_versions=5), dict[tuple[str, ...], Any]()
    for agent, shown, pause, restart in course:
        now += pause
        for records in (steady, restarted):
            records.learn([reading(agent, *shown)], now)
        rows |= stored(restarted)
        restarted.commit()
        steady.commit()
        if restart:
            rows = {key: state for key, state in rows.items() if state is not None}
            restarted = AgentRecords(max_versions=5)
            restarted.restore(Row(key, state) for key, state in rows.items())
        assert restarted.shown() == steady.shown()


def test_a_version_that_a_restart_restores_settles_invocations() -> None:
    before = pipeline()
    in_turn(before, spans("look", trace="0"))
    after = pipeline()
    after.records.restore(before.records.pending())
    assert in_turn(after, spans(trace="1"), at=1000.0) == {"1": 0.0}

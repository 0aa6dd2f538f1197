"""Drift without references, as scrapes show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from prometheus_client import generate_latest

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.sinks.prometheus.drift.gauges import SILENT_S
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.traffic.gauges import MAX_NAME_BYTES
from pathgauge.collector.sinks.prometheus.traffic.recording import MAX_ROWS, NAME, STORE_S
from pathgauge.collector.store.publications import decode, encode
from pathgauge.scorers.types import Flag, ToolCall
from support.durable_harness import DAY_S, DurableHarness
from support.simulated_traffic import Run, SimulatedAgent, replaced

HOUR = 3600.0
PREFIX = "pathgauge_traffic_drift_"
USUAL, CHANGED = ["search"], ["fetch", "search"]


def watching(**options: object) -> DurableHarness:
    return DurableHarness(**{"drift": Drift(), **options})


def calls(names: Iterable[str], *, group: int | None = None) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(name, group=group) for name in names)


def run(harness: DurableHarness, names: Iterable[str], count: int, **fields: Any) -> None:
    """Invocations that call these tools, one an hour."""
    for _ in range(count):
        harness.now += HOUR
        known: dict[str, Any] = {"tool_calls": calls(names), "scenario_id": None, **fields}
        harness.publish(**known)


def shown(harness: DurableHarness, name: str = "evidence_days") -> dict[tuple[str, ...], float]:
    return harness.series(f"{PREFIX}{name}")


def everything(harness: DurableHarness) -> dict[object, float]:
    return {key: value for key, value in harness.exposition().items() if key[0].startswith(PREFIX)}


def status(harness: DurableHarness) -> list[tuple[str, ...]]:
    return list(shown(harness, "status"))


def learned(**options: object) -> DurableHarness:
    harness = watching(**options)
    run(harness, USUAL, 250)
    return harness


def test_other_tool_calls_become_evidence_and_are_named() -> None:
    harness = learned()
    assert 0 < shown(harness)["planner", ""] < 30
    assert shown(harness, "changes") == shown(harness, "since_timestamp_seconds") == {}
    began = harness.now + HOUR
    run(harness, CHANGED, 20)
    assert shown(harness)["planner", ""] >= 365
    assert shown(harness, "since_timestamp_seconds") == {("planner", ""): began}
    assert status(harness) == [("planner", "", "diverging")]
    changes = shown(harness, "changes")
    named = {labels[2:] for labels in changes}
    assert named >= {("new", "tool", "fetch"), ("new", "path", "fetch → search")}
    assert len(changes) <= 10


@pytest.mark.slow
def test_usual_traffic_is_no_alarm() -> None:
    harness = watching()
    for at, names in SimulatedAgent(3, 10).runs(24 * 20):
        harness.now = at
        harness.publish(tool_calls=calls(names), scenario_id=None)
    assert shown(harness)["planner", ""] < 365
    assert status(harness) == [("planner", "", "watching")]


def test_learning_says_how_many_invocations_there_are_and_how_many_are_missing() -> None:
    harness = watching()
    run(harness, USUAL, 50)
    assert shown(harness) == {}
    assert shown(harness, "invocations") == {("planner", ""): 50}
    assert shown(harness, "missing_invocations") == {("planner", ""): 150}
    assert status(harness) == [("planner", "", "learning")]
    harness.now += 7 * DAY_S
    assert status(harness) == [("planner", "", "low_traffic")]


def test_a_new_version_has_evidence_of_its_own() -> None:
    harness = watching()
    run(harness, USUAL, 250, agent_version="v1")
    run(harness, CHANGED, 20, agent_version="v2")
    evidence = shown(harness)
    assert evidence["planner", "v2"] >= 365 > evidence["planner", ""]
    assert set(shown(harness, "since_timestamp_seconds")) == {("planner", "v2")}


def test_an_alarm_ends_when_the_calls_are_as_before() -> None:
    harness = learned()
    run(harness, CHANGED, 20)
    run(harness, USUAL, 30)
    assert shown(harness)["planner", ""] < 365
    assert shown(harness, "changes") == {}


def test_invocations_with_a_reference_do_not_count() -> None:
    harness = learned()
    run(harness, CHANGED, 20, scenario_id="refund")
    assert shown(harness)["planner", ""] < 30
    run(harness, CHANGED, 20, scenario_id="unknown")
    assert shown(harness)["planner", ""] >= 365


@pytest.mark.parametrize(
    "flag", ["lost_tool_calls", "lost_parents", "missing_root", "dropped_spans", "no_tool_spans"]
)
def test_invocations_whose_calls_are_not_known_do_not_count(flag: Flag) -> None:
    harness = learned()
    before = shown(harness)
    run(harness, CHANGED, 20, flags=frozenset({flag}))
    assert shown(harness) == before


def test_the_order_of_calls_that_were_requested_together_has_no_meaning() -> None:
    harness = watching()
    run(harness, [], 250, tool_calls=calls(["a", "b"], group=1))
    run(harness, [], 20, tool_calls=calls(["b", "a"], group=1))
    assert shown(harness)["planner", ""] < 30
    run(harness, [], 20, tool_calls=(*calls(["b"], group=1), *calls(["a"], group=2)))
    assert shown(harness)["planner", ""] >= 365


def test_revisions_and_withdrawals_count_nothing() -> None:
    harness = learned()
    run(harness, CHANGED, 1)
    evaluation = harness.publish(tool_calls=calls(CHANGED), scenario_id=None)
    before = everything(harness)
    harness.publish_evaluation(replace(evaluation, revision=1))
    harness.sink.withdraw(evaluation.key)
    assert everything(harness) == before


def stop(harness: DurableHarness) -> int:
    """Commit as a process does that stops; the number of commits."""
    harness.sink.finish()
    commits = 0
    while harness.sink.needs_commit:
        harness.commit()
        commits += 1
    return commits


@pytest.mark.parametrize("changed", [0, 3, 20])
def test_a_restart_continues_exactly(changed: int) -> None:
    harness = learned()
    run(harness, CHANGED, changed)
    stop(harness)
    after = harness.restarted(drift=Drift())
    assert everything(after) == everything(harness) != {}
    for one in (harness, after):
        run(one, CHANGED, 20)
    assert everything(after) == everything(harness)


def test_a_state_is_stored_every_few_minutes_not_with_each_commit() -> None:
    harness = watching()
    stored = []
    for _ in range(2 * int(STORE_S) // 30):
        harness.now += 30
        harness.publish(tool_calls=calls(USUAL), scenario_id=None)
        stored.append(any(row.key[0] == NAME for row in harness.sink.pending()))
    assert stored.count(True) == 1
    assert not harness.sink.needs_commit
    harness.now += STORE_S
    assert harness.sink.needs_commit


def test_a_step_of_the_clock_back_delays_no_storing() -> None:
    harness = watching()
    run(harness, USUAL, 1)
    harness.commit()
    harness.now -= DAY_S
    assert harness.sink.needs_commit


def test_what_a_crash_loses_is_not_counted_twice() -> None:
    harness = learned()
    harness.now += STORE_S
    harness.commit()
    at_commit = everything(harness)
    run(harness, CHANGED, 2)
    after = harness.restarted(drift=Drift())
    after.now -= 2 * HOUR
    assert everything(after) == at_commit


def test_many_agents_are_stored_by_several_commits() -> None:
    harness = watching()
    for number in range(MAX_ROWS + 1):
        run(harness, USUAL, 1, agent=f"agent{number}")
    assert stop(harness) == 2
    assert len(status(harness.restarted(drift=Drift()))) == MAX_ROWS + 1


def test_agents_without_room_are_counted_and_an_idle_one_makes_room() -> None:
    telemetry = InternalTelemetry()
    harness = watching(drift=Drift(max_agents=1), telemetry=telemetry)
    run(harness, USUAL, 1, agent="first")
    run(harness, USUAL, 2, agent="second")
    assert telemetry.series_overflow.get("traffic") == 2
    stop(harness)
    assert {key[1:] for key in harness.rows if key[0] == NAME} == {("", "first")}
    harness.now += 29 * DAY_S
    run(harness, USUAL, 1, agent="second")
    stop(harness)
    assert {key[1:] for key in harness.rows if key[0] == NAME} == {("", "second")}
    assert status(harness) == [("second", "", "learning")]


def test_silent_agents_have_no_evidence_and_later_no_series() -> None:
    harness = learned()
    harness.now += SILENT_S + 1
    assert shown(harness) == {}
    assert status(harness) == [("planner", "", "watching")]
    harness.now += 26 * DAY_S
    assert status(harness) == []


def test_without_the_section_nothing_is_detected() -> None:
    harness = learned(drift=None)
    assert everything(harness) == {}
    assert stop(harness) <= 1


def test_other_limits_apply_at_a_reload() -> None:
    harness = learned()
    day = Drift(false_alarm_interval=DAY_S)
    harness.sink.configure(harness.evaluator, harness.references, drift=day)
    run(harness, CHANGED, 1)
    soon = shown(harness)["planner", ""]
    run(harness, CHANGED, 20)
    assert 1 <= shown(harness)["planner", ""] < 365
    assert soon > 0
    harness.sink.configure(harness.evaluator, harness.references)
    assert everything(harness) == {}


def published(harness: DurableHarness, runs: Iterable[Run], *, sent: bool) -> None:
    """Publish runs whose calls were requested in pairs, directly or through a publication."""
    for number, (at, names) in enumerate(runs):
        harness.now = at
        tools = tuple(ToolCall(name, group=place // 2) for place, name in enumerate(names))
        if number % 2:  # pairs that are requested together come in any order
            tools = tuple(sorted(tools, key=lambda call: (call.group, call.name)))
        invocation = harness.invocation(tool_calls=tools, scenario_id=None)
        match = harness.references.match(invocation)
        evaluation = harness.evaluator.evaluate(invocation, match)
        if sent:
            body = encode(Publication(at, [evaluation]))
            [arrived] = decode(body, harness.evaluator, harness.references).events
            assert isinstance(arrived, Evaluation)
            evaluation = arrived
        harness.publish_evaluation(evaluation)


@pytest.mark.slow
def test_scorers_of_other_processes_lead_to_the_same_series() -> None:
    alone, gauge = watching(), watching()
    for harness, sent in ((alone, False), (gauge, True)):
        agent = SimulatedAgent(5, 10)
        published(harness, agent.runs(24 * 3), sent=sent)
        published(harness, agent.runs(48, replaced("search", "web_search", 0.5)), sent=sent)
    assert everything(gauge) == everything(alone)
    assert shown(gauge)["planner", ""] >= 365


def test_names_that_have_no_bytes_disturb_neither_the_store_nor_scrapes() -> None:
    harness = learned()
    run(harness, ["tool\udc80"], 20)
    rows = [row for row in harness.sink.pending() if row.key[0] == NAME]
    assert b"tool?" in orjson.dumps([row.state for row in rows])
    assert any(labels[-1] == "tool?" for labels in shown(harness, "changes"))


def test_long_paths_with_one_beginning_are_one_series() -> None:
    harness = watching()
    begin = ["x" * 70, "y" * 70] * 2
    run(harness, begin, 250)
    for _ in range(20):
        run(harness, [*begin, "one"], 1)
        run(harness, [*begin, "other"], 1)
    changes = shown(harness, "changes")
    [path] = [labels[-1] for labels in changes if labels[2:4] == ("new", "path")]
    assert len(path.encode()) == MAX_NAME_BYTES
    exposition = generate_latest(harness.sink.registry).decode().splitlines()
    series = [line.rpartition(" ")[0] for line in exposition if line.startswith(PREFIX)]
    assert len(series) == len(set(series))


def test_agents_under_one_label_are_not_watched() -> None:
    harness = watching(limits=LabelLimits(max_agents=1))
    run(harness, USUAL, 1, agent="first")
    run(harness, USUAL, 1, agent="second")
    assert status(harness) == [("first", "", "learning")]

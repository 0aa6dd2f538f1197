"""What is reported about the traffic of agents, from learning to the end of an episode."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from pathgauge.collector.core.traffic.changes import Change
from pathgauge.collector.core.traffic.drift import (
    AgentKey,
    EpisodeChange,
    TrafficDrift,
    TrafficStatus,
)
from pathgauge.collector.core.traffic.recent import CHARACTERS, INVOCATIONS, Recent
from support.simulated_traffic import (
    DAY,
    HOUR,
    START,
    Change as ChangedRun,
    Run,
    SimulatedAgent,
    added,
    replaced,
    retried,
    vanished,
)

RATE = 10
LEARNED_DAYS = 15
PLANNER = AgentKey("", "planner")


@cache
def _learned() -> str:
    drift = TrafficDrift()
    assert observe(drift, SimulatedAgent(1, RATE).runs(LEARNED_DAYS * 24), "v1") == []
    return json.dumps(drift.state(PLANNER))


def learned() -> tuple[TrafficDrift, SimulatedAgent]:
    """A detector that has watched an agent for two weeks, and the agent."""
    drift, agent = TrafficDrift(), SimulatedAgent(1, RATE)
    for _ in agent.runs(LEARNED_DAYS * 24):
        pass
    drift.restore([(PLANNER, json.loads(_learned()))])
    return drift, agent


def observe(
    drift: TrafficDrift, runs: Iterable[Run], version: str | None = None
) -> list[EpisodeChange]:
    return [
        change for at, names in runs for change in drift.observe("", "planner", version, names, at)
    ]


def until_episode(drift: TrafficDrift, runs: Iterable[Run]) -> EpisodeChange:
    for at, names in runs:
        for change in drift.observe("", "planner", None, names, at):
            return change
    raise AssertionError("no episode")


def status(drift: TrafficDrift, now: float, version: str | None = None) -> TrafficStatus:
    return next(found for found in drift.snapshot(now) if found.version == version)


def constant(first: float, count: int, names: tuple[str, ...] = ("search",)) -> list[Run]:
    """One invocation each hour."""
    return [(START + (first + number) * HOUR, names) for number in range(count)]


def test_learning_says_what_is_missing() -> None:
    drift = TrafficDrift()
    observe(drift, constant(0, 11))
    now = START + 10 * HOUR
    found = status(drift, now)
    assert (found.status, found.missing_invocations, found.missing_hours) == ("learning", 189, 14.0)
    assert (found.baseline_invocations, found.evidence_days, found.last) == (0, 0.0, now)
    assert found.invocations == 11
    assert found.episode is None


def test_too_little_traffic_to_learn_from_is_said_after_a_week() -> None:
    drift = TrafficDrift()
    observe(drift, constant(0, 150))
    found = status(drift, START + 7 * DAY)
    assert (found.status, found.missing_invocations, found.missing_hours) == (
        "low_traffic",
        50,
        0.0,
    )


def test_a_baseline_needs_two_hundred_invocations_and_a_day() -> None:
    drift = TrafficDrift()
    observe(drift, [(START + number, ("search",)) for number in range(1000)])
    assert status(drift, START + 1000).status == "learning"
    observe(drift, [(START + DAY, ("search",))])
    assert status(drift, START + DAY).status == "watching"


def test_too_little_traffic_to_see_a_change_is_said_after_learning() -> None:
    drift, _ = learned()
    end = START + LEARNED_DAYS * DAY
    assert status(drift, end).status == "watching"
    found = status(drift, end + 8 * DAY)
    assert (found.status, found.missing_invocations) == ("low_traffic", 20)


@pytest.mark.parametrize(
    ("change", "kind", "name", "direction", "most"),
    [
        (replaced("search", "web_search", 0.2), "tool", "web_search", "new", 200),
        (replaced("search", "web_search", 0.5), "tool", "web_search", "new", 60),
        (added("browser", 0.1), "tool", "browser", "new", 150),
        (retried(0.2), "transition", "answer → answer", "new", 100),
        (vanished("fetch"), "tool", "fetch", "vanished", 300),
    ],
)
def test_a_change_is_found_and_named(
    change: ChangedRun, kind: str, name: str, direction: str, most: int
) -> None:
    drift, agent = learned()
    begin = START + LEARNED_DAYS * DAY
    opened = until_episode(drift, agent.runs(24 * 14, change))
    episode = opened.episode
    assert (opened.version, episode.outcome, episode.ended) == (None, None, None)
    assert abs(episode.since - begin) < 12 * HOUR
    assert episode.invocations < most
    assert episode.evidence_days >= 365
    assert any((c.kind, c.name, c.direction) == (kind, name, direction) for c in episode.changes)
    assert len(episode.changes) <= 10
    shares = [c.share for c in episode.changes]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1 + 1e-9
    found = status(drift, episode.opened)
    assert (found.status, found.episode) == ("diverging", episode)


def test_the_changes_of_an_episode_have_the_shares_before_and_since() -> None:
    drift = TrafficDrift()
    observe(drift, constant(0, 250))
    opened = until_episode(drift, constant(250, 50, ("fetch", "search")))
    tool = next(c for c in opened.episode.changes if c.name == "fetch")
    assert tool == Change("tool", "fetch", "new", 0.0, 1.0, tool.share)
    assert opened.episode.since == START + 250 * HOUR


def test_an_incident_is_one_episode_that_ends_when_the_traffic_is_usual_again() -> None:
    drift, agent = learned()
    during = observe(drift, agent.runs(48, replaced("search", "web_search", 0.3)))
    after = observe(drift, agent.runs(24 * 10))
    assert [change.episode.outcome for change in during] == [None]
    assert [change.episode.outcome for change in after] == ["recovered"]
    assert after[0].episode.opened == during[0].episode.opened
    assert after[0].episode.ended is not None
    assert after[0].episode.ended - (START + (LEARNED_DAYS + 2) * DAY) < 48 * HOUR


def test_a_change_that_lasts_for_a_week_is_the_new_baseline() -> None:
    drift, agent = learned()
    change = replaced("search", "web_search", 0.5)
    found = observe(drift, agent.runs(24 * 21, change))
    assert [each.episode.outcome for each in found] == [None, "accepted"]
    opened, ended = (each.episode for each in found)
    assert ended.ended is not None
    assert 7 * DAY <= ended.ended - opened.opened < 7.2 * DAY
    back = until_episode(drift, agent.runs(24 * 5))
    assert ("web_search", "vanished") in {(c.name, c.direction) for c in back.episode.changes}


def test_a_new_version_is_compared_with_the_traffic_before_it() -> None:
    drift, agent = learned()
    change = replaced("search", "web_search", 0.3)
    canary: list[EpisodeChange] = []
    for number, (at, names) in enumerate(agent.runs(24 * 5, None)):
        if number % 10:
            assert drift.observe("", "planner", "v1", names, at) == []
        else:
            altered = change(names, agent.luck)
            canary += drift.observe("", "planner", "v2", altered, at)
    assert [(each.version, each.episode.outcome) for each in canary] == [("v2", None)]
    now = START + (LEARNED_DAYS + 5) * DAY
    assert {(s.version, s.status) for s in drift.snapshot(now)} == {
        (None, "watching"),
        ("v2", "diverging"),
    }


def test_an_equal_version_is_known_after_a_week() -> None:
    drift, agent = learned()
    assert observe(drift, agent.runs(24 * 6), "v2") == []
    assert {s.version for s in drift.snapshot(START)} == {None, "v2"}
    assert observe(drift, agent.runs(24 * 2), "v2") == []
    assert {s.version for s in drift.snapshot(START)} == {None}


def test_a_different_version_becomes_the_baseline_after_a_week() -> None:
    drift, agent = learned()
    found = observe(drift, agent.runs(24 * 14, added("browser", 0.5)), "v2")
    assert [(each.version, each.episode.outcome) for each in found] == [
        ("v2", None),
        ("v2", "accepted"),
    ]
    assert {(s.version, s.status) for s in drift.snapshot(START)} == {(None, "watching")}


def test_the_episode_of_a_version_that_was_rolled_back_ends_after_a_day() -> None:
    drift, agent = learned()
    bad = observe(drift, agent.runs(12, added("browser", 0.5)), "v2")
    back = observe(drift, agent.runs(48), "v1")
    assert [each.episode.outcome for each in [*bad, *back]] == [None, "superseded"]
    assert back[0].episode.ended is not None
    assert back[0].episode.ended - (START + (LEARNED_DAYS + 0.5) * DAY) == pytest.approx(
        DAY, abs=2 * HOUR
    )


def test_at_most_two_versions_are_on_trial() -> None:
    drift, agent = learned()
    for version in ("v2", "v3", "v4"):
        observe(drift, agent.runs(6), version)
    assert {s.version for s in drift.snapshot(START)} == {None, "v3", "v4"}


def test_a_detector_continues_exactly_from_its_state() -> None:
    drift, agent = learned()
    observe(drift, agent.runs(4, retried(0.1)), "v2")
    restored = TrafficDrift()
    restored.restore([(PLANNER, json.loads(json.dumps(drift.state(PLANNER))))])
    runs = list(agent.runs(60, retried(0.2)))
    assert observe(restored, runs, "v2") == observe(drift, runs, "v2") != []
    now = runs[-1][0]
    assert restored.snapshot(now) == drift.snapshot(now)
    assert json.dumps(restored.state(PLANNER)) == json.dumps(drift.state(PLANNER))


def test_a_state_of_another_format_is_ignored() -> None:
    drift = TrafficDrift()
    drift.restore([(PLANNER, {"format": 0, "main": "unknown"})])
    assert len(drift) == 0


def test_agents_and_tenants_are_separate() -> None:
    drift = TrafficDrift()
    for tenant, agent in (("", "a"), ("", "b"), ("t", "a")):
        drift.observe(tenant, agent, None, ["search"], START)
    assert [(s.tenant, s.agent) for s in drift.snapshot(START)] == [
        ("", "a"),
        ("", "b"),
        ("t", "a"),
    ]


def test_agents_beyond_the_limit_are_dropped_and_counted_until_one_is_idle() -> None:
    drift = TrafficDrift(max_agents=2)
    for number, agent in enumerate("abcc"):
        drift.observe("", agent, None, [], START + number)
    assert (len(drift), drift.dropped) == (2, 2)
    drift.observe("", "a", None, [], START + 10 * DAY)
    drift.observe("", "c", None, [], START + 29 * DAY)
    assert [s.agent for s in drift.snapshot(START)] == ["a", "c"]
    assert drift.forgotten == [AgentKey("", "b")]


def test_of_too_many_agents_those_that_were_idle_for_longest_are_forgotten() -> None:
    drift = TrafficDrift()
    for number, agent in enumerate("abca"):
        drift.observe("", agent, None, [], START + number)
    drift.configure(1, 365.0)
    assert [s.agent for s in drift.snapshot(START)] == ["a"]
    assert drift.forgotten == [AgentKey("", "b"), AgentKey("", "c")]


def test_an_episode_opens_at_the_evidence_that_was_asked_for() -> None:
    def opened(alarm_days: float) -> EpisodeChange:
        drift = TrafficDrift(alarm_days=alarm_days)
        observe(drift, constant(0, 250))
        return until_episode(drift, constant(250, 50, ("fetch", "search")))

    soon, late = opened(30).episode, opened(1e9).episode
    assert 30 <= soon.evidence_days < 1e9 <= late.evidence_days
    assert soon.opened < late.opened


def test_a_change_is_found_after_a_clock_that_was_far_ahead_is_set_back() -> None:
    drift, agent = learned()
    at, names = next(agent.runs(1))
    drift.observe("", "planner", None, names, at + 400 * DAY)
    episode = until_episode(
        drift, agent.runs(24 * 3, replaced("search", "web_search", 0.5))
    ).episode
    assert at <= episode.since <= episode.opened <= at + 3 * DAY
    assert status(drift, episode.opened).last == episode.opened


def test_time_that_runs_backwards_is_the_latest_time() -> None:
    drift = TrafficDrift()
    drift.observe("", "planner", None, [], START)
    drift.observe("", "planner", None, [], START - DAY)
    assert status(drift, START).last == START


def test_the_state_of_an_agent_with_ever_new_tools_is_bounded() -> None:
    def size(count: int) -> int:
        drift: Any = TrafficDrift()
        for number in range(count):
            names = [f"tool {number} {call}" for call in range(6)]
            drift.observe("", "planner", None, names, START + number * 300)
        return len(json.dumps(drift.state(PLANNER)))

    assert size(1000) < 1.2 * size(600)


def test_long_names_leave_fewer_invocations_to_date_a_change_by() -> None:
    recent = Recent()
    for number in range(600):
        recent.add((f"tool {number}", "tool search"), START + number)
    assert len(recent) == INVOCATIONS
    for number in range(600, 1200):
        recent.add((f"tool {number}".ljust(1000, "x"), "tool search"), START + number)
    assert len(recent) == CHARACTERS // 1000 - 1
    assert Recent.restore(json.loads(json.dumps(recent.state()))).state() == recent.state()
    recent.add(("x" * CHARACTERS, "y"), START + 1200)
    assert len(recent) == 1
    for number in range(600):
        recent.add(("tool search",), START + 1201 + number)
    assert len(recent) == INVOCATIONS

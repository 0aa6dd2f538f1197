"""Label values stay bounded whatever senders call their agents, versions and scenarios."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.sinks.prometheus.labels import (
    SWEEP_S,
    YIELD_AFTER_S,
    LabelLimits,
    LabelRegistry,
    Labels,
    Use,
)

IDLE_S = 3600.0


def names(agent: str = "a", version: str = "", scenario: str = "") -> Labels:
    return Labels(agent, version, scenario)


def registry(agents: int = 10, versions: int = 10, series: int = 100) -> LabelRegistry:
    labels = LabelRegistry(LabelLimits(agents, versions, series, IDLE_S))
    labels.configure(["s1", "s2"])
    return labels


@pytest.mark.parametrize(
    ("agent", "version", "scenario", "labels"),
    [
        ("a", "v1", "s1", Labels("a", "v1", "s1")),
        ("", "", "", Labels("", "", "")),
        ("a", "", "never heard of", Labels("a", "", "__other__")),
        ("x" * 200, "é" * 200, "s1", Labels("x" * 64, "é" * 32, "s1")),
        ("\ud800", "", "s1", Labels("?", "", "s1")),
    ],
)
def test_labels_are_known_empty_or_other(
    agent: str, version: str, scenario: str, labels: Labels
) -> None:
    assert registry().admit(names(agent, version, scenario), 0) == labels


def test_the_first_agents_keep_their_place_and_the_rest_is_other() -> None:
    labels = registry(agents=2)
    assert [labels.admit(names(agent), 0).agent for agent in "abcab"] == [
        "a",
        "b",
        "__other__",
        "a",
        "b",
    ]
    assert labels.overflow.items() == [(("agents",), 1), (("versions",), 0), (("series",), 0)]


def test_each_agent_has_room_for_versions_of_its_own() -> None:
    labels = registry(versions=1)
    seen = [
        labels.admit(names(agent, version), 0)
        for agent, version in [("a", "v1"), ("a", "v2"), ("b", "v2"), ("", "v3")]
    ]
    assert [(s.agent, s.agent_version) for s in seen] == [
        ("a", "v1"),
        ("a", "__other__"),
        ("b", "v2"),
        ("", "v3"),
    ]
    assert labels.overflow.get("versions") == 1


def test_an_agent_without_room_has_no_versions_either() -> None:
    labels = registry(agents=1)
    labels.admit(names("a"), 0)
    assert labels.admit(names("b", "v1", "s1"), 0) == Labels("__other__", "__other__", "s1")
    assert labels.overflow.get("versions") == 0


def test_a_new_version_takes_the_place_of_one_that_fell_silent_but_not_of_one_in_use() -> None:
    labels = registry(versions=1)
    labels.admit(names("a", "v1"), 0)
    assert labels.admit(names("a", "v2"), YIELD_AFTER_S).agent_version == "__other__"
    assert labels.admit(names("a", "v2"), YIELD_AFTER_S + 1).agent_version == "v2"
    assert labels.retire(YIELD_AFTER_S + 1) == [Labels("a", "v1", "")]


def test_combinations_beyond_the_limit_keep_their_agent() -> None:
    labels = registry(series=1)
    assert labels.admit(names("a", "v1", "s1"), 0) == Labels("a", "v1", "s1")
    assert labels.admit(names("a", "v1", "s2"), 0) == Labels("a", "__other__", "__other__")
    assert labels.admit(names("a", "v1", "s1"), 0) == Labels("a", "v1", "s1")
    assert labels.overflow.get("series") == 1


def test_what_was_silent_for_long_is_retired_and_makes_room() -> None:
    labels = registry(agents=1, series=1)
    labels.admit(names("a", "v1"), 0)
    assert labels.retire(IDLE_S) == []
    assert labels.retire(IDLE_S + SWEEP_S) == [Labels("a", "v1", "")]
    assert list(labels) == []
    assert labels.admit(names("b"), IDLE_S + SWEEP_S) == Labels("b", "", "")


def test_what_is_in_use_is_not_retired() -> None:
    labels = registry()
    labels.admit(names("a", "v1", "s1"), 0)
    labels.admit(names("", "v1", ""), 0)
    labels.admit(names("a", "v1", "s1"), IDLE_S)
    labels.admit(names("", "v1", ""), IDLE_S)
    assert labels.retire(IDLE_S + SWEEP_S) == []


def test_the_series_that_hold_the_overflow_stay_with_their_agent() -> None:
    labels = registry(series=1)
    for now in (0, IDLE_S):
        labels.admit(names("a", "", "s1"), now)
        assert labels.admit(names("a", "", "s2"), now) == Labels("a", "__other__", "__other__")
    assert labels.retire(IDLE_S + SWEEP_S) == []
    assert labels.retire(2 * IDLE_S + SWEEP_S) == [
        Labels("a", "", "s1"),
        Labels("a", "__other__", "__other__"),
    ]


def test_a_version_that_gave_way_gives_its_series_back() -> None:
    labels = registry(versions=1, series=1)
    labels.admit(names("a", "v1"), 0)
    assert labels.admit(names("a", "v2"), YIELD_AFTER_S + 1) == Labels(
        "a", "__other__", "__other__"
    )
    labels.retire(YIELD_AFTER_S + 1)
    assert labels.admit(names("a", "v2"), YIELD_AFTER_S + 1) == Labels("a", "v2", "")


def test_idle_names_are_looked_for_once_in_a_while_only() -> None:
    labels = registry()
    labels.admit(names("a"), 0)
    assert labels.retire(IDLE_S) == []
    assert labels.retire(IDLE_S + SWEEP_S - 1) == []
    assert labels.retire(IDLE_S + SWEEP_S) == [Labels("a", "", "")]


def test_restored_labels_have_their_places_and_their_ages() -> None:
    labels = registry(agents=2, series=4)
    labels.restore(
        [Use(Labels("a", "v1", "s1"), 0, 2), Use(Labels("b", "", ""), SWEEP_S, 1)], now=SWEEP_S
    )
    assert set(labels) == {Labels("a", "v1", "s1"), Labels("b", "", "")}
    assert labels.admit(names("c"), SWEEP_S, weight=2) == Labels(
        "__other__", "__other__", "__other__"
    )
    assert labels.overflow.items() == [(("agents",), 1), (("versions",), 0), (("series",), 1)]
    assert labels.retire(IDLE_S + 1) == [Labels("a", "v1", "s1")]
    assert labels.retire(IDLE_S + 2 * SWEEP_S + 1) == [Labels("b", "", "")]


@pytest.mark.parametrize(
    ("limits", "kept"), [((2, 10, 100), "bc"), ((10, 10, 2), "bc"), ((10, 10, 100), "abc")]
)
def test_of_restored_labels_those_seen_last_have_room(
    limits: tuple[int, int, int], kept: str
) -> None:
    labels = registry(*limits)
    labels.restore(
        [Use(Labels(agent, "", ""), seen, 1) for seen, agent in enumerate("abc")], now=10
    )
    assert {one.agent for one in labels} == set(kept)


def test_restored_versions_beyond_the_limit_leave_the_oldest_first() -> None:
    labels = registry(versions=2)
    labels.restore([Use(Labels("a", f"v{seen}", ""), seen, 1) for seen in range(3)], now=10)
    assert {one.agent_version for one in labels} == {"v1", "v2"}


def test_a_restored_version_gives_way_when_it_was_silent() -> None:
    labels = registry(versions=2)
    labels.restore([Use(Labels("a", "v1", ""), 0, 1), Use(Labels("a", "v2", ""), 100, 1)], now=100)
    assert labels.admit(names("a", "v3"), YIELD_AFTER_S + 1).agent_version == "v3"
    assert labels.retire(YIELD_AFTER_S + 1) == [Labels("a", "v1", "")]


def test_the_labels_that_hold_the_overflow_are_restored_even_where_there_is_no_room() -> None:
    labels = registry(series=1)
    overflow = Labels("a", "__other__", "__other__")
    labels.restore([Use(overflow, 5, 1), Use(Labels("a", "", "s1"), 0, 1)], now=5)
    assert set(labels) == {overflow, Labels("a", "", "s1")}


NAMES = st.one_of(st.just(""), st.sampled_from("abcdefgh"), st.text(max_size=3))
SCENARIOS = st.sampled_from(["", "s1", "s2", "s3"])


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(NAMES, NAMES, SCENARIOS, st.sampled_from([0, 0, 1, 100, 1000, 5000])), max_size=80
    ),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 8),
)
def test_whatever_comes_the_live_labels_are_bounded_and_every_admitted_one_is_live(
    told: list[tuple[str, str, str, int]], agents: int, versions: int, series: int
) -> None:
    labels, now = registry(agents, versions, series), 0.0
    for agent, version, scenario, pause in told:
        now += pause
        retired = labels.retire(now)
        assert not set(retired) & set(labels)
        admitted = labels.admit(names(agent, version, scenario), now)
        live = set(labels)
        assert admitted in live
        assert len({one.agent for one in live} - {"", "__other__"}) <= agents
        assert admitted.scenario in {"", "s1", "s2", "__other__"}
    labels.retire(now + SWEEP_S)
    whole = [one for one in labels if not one.agent_version == one.scenario == "__other__"]
    assert len(whole) <= series
    assert (
        len(
            {
                (one.agent, one.agent_version)
                for one in whole
                if one.agent_version not in {"", "__other__"}
            }
        )
        <= (agents + 1) * versions
    )

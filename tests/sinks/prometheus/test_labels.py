"""Label values are bounded, whatever senders call their agents, versions and scenarios."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.evaluations.label_values import (
    MAX_SCENARIO_BYTES,
    beginning,
    label_value,
    may_be_cut,
)
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.label_registry import SWEEP_S, LabelRegistry
from pathgauge.collector.sinks.prometheus.labels import Labels, LabelUse
from pathgauge.collector.sinks.prometheus.tenant_labels import VERSION_IDLE_S

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
        ("x" * 200, "é" * 200, "s1", Labels("x" * 55 + "~01d7de14", "é" * 27 + "~d854fa06", "s1")),
        ("\ud800", "", "s1", Labels("?", "", "s1")),
    ],
)
def test_label_values_are_known_empty_or_other(
    agent: str, version: str, scenario: str, labels: Labels
) -> None:
    assert registry().admit(names(agent, version, scenario), 0) == labels


@given(st.text(min_size=130, max_size=190), st.text(max_size=3), st.text(max_size=3))
def test_names_that_begin_alike_have_labels_of_their_own(same: str, one: str, other: str) -> None:
    found = [label_value(same + end) for end in (one, other)]
    assert (found[0] == found[1]) == (one == other)
    for label in found:
        assert len(label.encode()) <= MAX_SCENARIO_BYTES
        assert label_value(label) == label
        assert (same + one).startswith(beginning(label)) or not may_be_cut(label)


def test_agents_beyond_the_limit_are_other() -> None:
    labels = registry(agents=2)
    assert [labels.admit(names(agent), 0).agent for agent in "abcab"] == [
        "a",
        "b",
        "__other__",
        "a",
        "b",
    ]
    assert labels.overflow.items() == [
        (("agents",), 1),
        (("versions",), 0),
        (("series",), 0),
        (("total",), 0),
    ]


def test_the_limit_of_versions_is_for_each_agent() -> None:
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


def test_an_agent_beyond_the_limit_has_no_versions() -> None:
    labels = registry(agents=1)
    labels.admit(names("a"), 0)
    assert labels.admit(names("b", "v1", "s1"), 0) == Labels("__other__", "__other__", "s1")
    assert labels.overflow.get("versions") == 0


def test_a_new_version_replaces_an_idle_one_but_not_one_in_use() -> None:
    labels = registry(versions=1)
    labels.admit(names("a", "v1"), 0)
    assert labels.admit(names("a", "v2"), VERSION_IDLE_S).agent_version == "__other__"
    assert labels.admit(names("a", "v2"), VERSION_IDLE_S + 1).agent_version == "v2"
    assert {one.agent_version for one in labels} == {"v2", "__other__"}


def test_a_version_is_in_use_if_any_of_its_scenarios_is() -> None:
    labels = registry(versions=1)
    labels.admit(names("a", "v1", "s1"), 0)
    labels.admit(names("a", "v1", "s2"), VERSION_IDLE_S)
    assert labels.admit(names("a", "v2"), VERSION_IDLE_S + 1).agent_version == "__other__"


def test_a_full_agent_does_not_replace_the_versions_of_another_agent() -> None:
    labels = registry(versions=1)
    labels.admit(names("b", "v1"), 0)
    labels.admit(names("a", "v1"), VERSION_IDLE_S)
    labels.admit(names("a", "v2"), VERSION_IDLE_S + 1)
    assert Labels("b", "v1", "") in set(labels)


def test_label_sets_beyond_the_limit_keep_their_agent() -> None:
    labels = registry(series=1)
    assert labels.admit(names("a", "v1", "s1"), 0) == Labels("a", "v1", "s1")
    assert labels.admit(names("a", "v1", "s2"), 0) == Labels("a", "__other__", "__other__")
    assert labels.admit(names("a", "v1", "s1"), 0) == Labels("a", "v1", "s1")
    assert labels.overflow.get("series") == 1


def test_idle_names_are_forgotten_and_make_room() -> None:
    labels = registry(agents=1, series=1)
    labels.admit(names("a", "v1"), 0)
    assert labels.sweep(IDLE_S) is False
    assert list(labels) == [Labels("a", "v1", "")]
    assert labels.sweep(IDLE_S + SWEEP_S)
    assert list(labels) == []
    assert labels.admit(names("b"), IDLE_S + SWEEP_S) == Labels("b", "", "")


def test_names_in_use_are_not_forgotten() -> None:
    labels = registry()
    labels.admit(names("a", "v1", "s1"), 0)
    labels.admit(names("", "v1", ""), 0)
    labels.admit(names("a", "v1", "s1"), IDLE_S)
    labels.admit(names("", "v1", ""), IDLE_S)
    labels.sweep(IDLE_S + SWEEP_S)
    assert set(labels) == {Labels("a", "v1", "s1"), Labels("", "v1", "")}


def test_overflow_labels_are_forgotten_when_they_are_idle() -> None:
    labels = registry(series=1)
    for now in (0, IDLE_S):
        labels.admit(names("a", "", "s1"), now)
        assert labels.admit(names("a", "", "s2"), now) == Labels("a", "__other__", "__other__")
    labels.sweep(IDLE_S + SWEEP_S)
    assert Labels("a", "__other__", "__other__") in set(labels)
    labels.sweep(2 * IDLE_S + SWEEP_S)
    assert list(labels) == []


def test_a_replaced_version_makes_room_for_series() -> None:
    labels = registry(versions=1, series=1)
    labels.admit(names("a", "v1"), 0)
    assert labels.admit(names("a", "v2"), VERSION_IDLE_S + 1) == Labels("a", "v2", "")
    assert labels.overflow.total() == 0


def test_series_of_an_idle_version_give_way_to_those_of_a_new_one() -> None:
    labels = registry(series=2)
    for scenario in ("s1", "s2"):
        labels.admit(names("a", "v1", scenario), 0)
    other = Labels("a", "__other__", "__other__")
    assert labels.admit(names("a", "v2", "s1"), VERSION_IDLE_S) == other
    later = VERSION_IDLE_S + SWEEP_S
    shown = [labels.admit(names("a", "v2", scenario), later) for scenario in ("s1", "s2")]
    assert shown == [Labels("a", "v2", "s1"), Labels("a", "v2", "s2")]
    assert set(labels) == {*shown, other}
    assert labels.overflow.get("series") == 1


def test_series_of_a_version_in_use_of_another_agent_or_of_the_same_version_stay() -> None:
    labels = registry(series=4)
    kept = [Labels("b", "v1", "s1"), Labels("a", "v1", "s1"), Labels("a", "v2", "s1")]
    for one in kept:
        labels.admit(one, 0)
    kept.append(labels.admit(names("a", "v1", "s2"), VERSION_IDLE_S))
    labels.admit(names("a", "v2", "s2"), VERSION_IDLE_S + 1)
    assert set(labels) == {*kept, Labels("a", "__other__", "__other__")}


def test_idle_names_are_searched_once_per_interval() -> None:
    labels = registry()
    labels.admit(names("a"), 0)
    assert labels.sweep(IDLE_S) is False
    assert labels.sweep(IDLE_S + SWEEP_S - 1) is None
    assert labels.sweep(IDLE_S + SWEEP_S)


def test_restored_labels_are_known_and_have_their_age() -> None:
    labels = registry(agents=2, series=4)
    labels.restore(
        [LabelUse(Labels("a", "v1", "s1"), 0, 2), LabelUse(Labels("b", "", ""), SWEEP_S, 1)],
        now=SWEEP_S,
    )
    assert set(labels) == {Labels("a", "v1", "s1"), Labels("b", "", "")}
    assert labels.admit(names("c"), SWEEP_S, weight=2) == Labels(
        "__other__", "__other__", "__other__"
    )
    assert labels.overflow.items() == [
        (("agents",), 1),
        (("versions",), 0),
        (("series",), 1),
        (("total",), 0),
    ]
    overflow = Labels("__other__", "__other__", "__other__")
    assert labels.sweep(IDLE_S + 1)
    assert set(labels) == {Labels("b", "", ""), overflow}
    assert labels.sweep(IDLE_S + 2 * SWEEP_S + 1)
    assert set(labels) == set()


@pytest.mark.parametrize(
    ("limits", "kept"), [((2, 10, 100), "bc"), ((10, 10, 2), "bc"), ((10, 10, 100), "abc")]
)
def test_of_too_many_restored_labels_those_seen_last_are_kept(
    limits: tuple[int, int, int], kept: str
) -> None:
    labels = registry(*limits)
    labels.restore(
        [LabelUse(Labels(agent, "", ""), seen, 1) for seen, agent in enumerate("abc")], now=10
    )
    assert {one.agent for one in labels} == set(kept)


def test_of_too_many_restored_versions_the_oldest_are_dropped() -> None:
    labels = registry(versions=2)
    labels.restore([LabelUse(Labels("a", f"v{seen}", ""), seen, 1) for seen in range(3)], now=10)
    assert {one.agent_version for one in labels} == {"v1", "v2"}


def test_an_idle_restored_version_is_replaced() -> None:
    labels = registry(versions=2)
    labels.restore(
        [LabelUse(Labels("a", "v1", ""), 0, 1), LabelUse(Labels("a", "v2", ""), 100, 1)], now=100
    )
    assert labels.admit(names("a", "v3"), VERSION_IDLE_S + 1).agent_version == "v3"
    assert {one.agent_version for one in labels} == {"v2", "v3"}


def test_overflow_labels_are_restored_without_room() -> None:
    labels = registry(series=1)
    overflow = Labels("a", "__other__", "__other__")
    labels.restore([LabelUse(overflow, 5, 1), LabelUse(Labels("a", "", "s1"), 0, 1)], now=5)
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
def test_known_labels_are_bounded_and_admitted_ones_are_known(
    sent: list[tuple[str, str, str, int]], agents: int, versions: int, series: int
) -> None:
    labels, now = registry(agents, versions, series), 0.0
    for agent, version, scenario, pause in sent:
        now += pause
        labels.sweep(now)
        admitted = labels.admit(names(agent, version, scenario), now)
        live = set(labels)
        assert admitted in live
        assert len({one.agent for one in live} - {"", "__other__"}) <= agents
        assert admitted.scenario in {"", "s1", "s2", "__other__"}
    labels.sweep(now + SWEEP_S)
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

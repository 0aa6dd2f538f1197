"""The series of all tenants together are bounded, and no tenant can take all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.label_limits import AGENT_VERSION_WEIGHT, LabelLimits
from pathgauge.collector.sinks.prometheus.label_registry import LabelRegistry
from pathgauge.collector.sinks.prometheus.labels import OTHER, Labels, LabelUse
from pathgauge.collector.sinks.prometheus.tenant_labels import VERSION_IDLE_S
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.durable_harness import DurableHarness
from support.sink_harness import ANSWER, Rating, SinkHarness, Waste

TENANTS = frozenset({"acme", "globex", "initech", "umbrella"})
ONE = 1 + AGENT_VERSION_WEIGHT
"""Room for one agent with one criterion."""


def registry(
    total: int, tenants: Iterable[str] = TENANTS, metrics: int = 1, **limits: Any
) -> LabelRegistry:
    labels = LabelRegistry(
        LabelLimits(max_series_total=total, tenants=frozenset(tenants), **limits)
    )
    labels.configure(["s1", "s2"], lambda _: metrics, metrics)
    return labels


def last_resort(tenant: str) -> Labels:
    return Labels(OTHER, OTHER, OTHER, tenant)


def flood(labels: LabelRegistry, tenant: str, agents: int = 100) -> int:
    """How many of these agents of a tenant keep their name."""
    return sum(
        labels.admit(Labels(f"agent {number}", "", "s1", tenant), 0).agent != OTHER
        for number in range(agents)
    )


def test_a_tenant_that_comes_first_leaves_the_others_their_shares() -> None:
    labels = registry(total=32 * ONE + 5 * ONE)  # 5: last resorts of the tenants, and of all
    assert [flood(labels, tenant) for tenant in sorted(TENANTS)] == [16 + 4, 4, 4, 4]


def test_a_share_for_one_agent_is_kept_and_a_smaller_one_is_not() -> None:
    labels = registry(total=8 * ONE + 5 * ONE)
    assert [flood(labels, tenant) for tenant in sorted(TENANTS)] == [1 + 4, 1, 1, 1]
    labels = registry(total=8 * ONE - 1 + 5 * ONE)
    assert [flood(labels, tenant) for tenant in sorted(TENANTS)] == [7, 0, 0, 0]


def test_one_of_few_tenants_can_use_what_the_others_do_not() -> None:
    labels = registry(total=20 * ONE + 3 * ONE, tenants={"acme", "umbrella"})
    assert (flood(labels, "acme"), flood(labels, "umbrella")) == (15, 5)


def test_a_single_tenant_has_all_room() -> None:
    labels = registry(total=20 * ONE + 2 * ONE, tenants=())
    assert flood(labels, "") == 20


def test_a_tenant_that_is_not_configured_any_more_has_no_share() -> None:
    labels = registry(total=32 * ONE + 5 * ONE)
    flood(labels, "acme")
    assert (flood(labels, "hooli"), flood(labels, "globex")) == (0, 4)


SENT_AND_SHOWN = [
    (("a", "v1", "s1"), ("a", "v1", "s1")),  # a version takes 3 + 1
    (("a", "v1", "s2"), ("a", "v1", "s2")),
    (("a", "v2", "s1"), ("a", "v2", "s1")),
    (("a", OTHER, "s1"), ("a", OTHER, "s1")),
    (("a", "v3", "s2"), ("a", OTHER, "s2")),
    (("a", "v4", ""), ("a", OTHER, "")),
    (("a", "v5", "unknown"), ("a", OTHER, OTHER)),
    (("a", "v1", ""), ("a", OTHER, "")),
    (("b", "v1", "s1"), (OTHER, OTHER, OTHER)),
    (("a", "v1", "s2"), ("a", "v1", "s2")),
]


def test_names_beyond_the_total_become_other_from_the_version_to_the_agent() -> None:
    labels = registry(total=16 + 2 * ONE, tenants=())
    assert [labels.admit(Labels(*names), 0)[:3] for names, _ in SENT_AND_SHOWN] == [
        shown for _, shown in SENT_AND_SHOWN
    ]
    assert labels.overflow.items() == [
        (("agents",), 0),
        (("versions",), 0),
        (("series",), 0),
        (("total",), 5),
    ]


def test_every_tenant_keeps_its_own_last_resort_while_half_of_the_room_is_enough() -> None:
    labels = registry(total=20)  # 10 for the last resorts: of one tenant, and of all together
    shown = [
        labels.admit(Labels("a", f"v{number}", "s1", tenant), 0)
        for tenant in ("acme", "globex", "umbrella")
        for number in range(3)
    ]
    assert shown == [
        Labels("a", "v0", "s1", "acme"),
        Labels("a", "v1", "s1", "acme"),
        last_resort("acme"),
        *[last_resort(OTHER)] * 6,
    ]
    assert labels.overflow.items() == [
        (("agents",), 0),
        (("versions",), 0),
        (("series",), 0),
        (("total",), 7),
    ]


@pytest.mark.parametrize("tenants", [(), TENANTS])
def test_a_total_that_is_too_small_for_anything_leaves_one_last_resort(
    tenants: Iterable[str],
) -> None:
    labels = registry(total=1, tenants=tenants)
    for tenant in sorted(tenants) or [""]:
        labels.admit(Labels("a", "v1", "s1", tenant), 0)
    assert list(labels) == [last_resort(OTHER if tenants else "")]


def test_labels_that_mix_scenarios_take_room_for_every_metric() -> None:
    total = 40
    one, mixed = registry(total, (), metrics=1), registry(total, (), metrics=4)
    for labels in (one, mixed):
        for number in range(20):
            labels.admit(Labels(f"agent {number}", OTHER, OTHER), 0)
    assert [len(set(labels) - {last_resort("")}) for labels in (one, mixed)] == [
        (total - 2 * ONE) // ONE,
        (total - 2 * (4 + AGENT_VERSION_WEIGHT)) // (4 + AGENT_VERSION_WEIGHT),
    ]


def test_a_forgotten_name_makes_room_for_another_tenant() -> None:
    labels = registry(total=18, idle_s=3600)  # half of it for two last resorts
    labels.admit(Labels("a", "", "s1", "acme"), 0)
    labels.admit(Labels("a", "", "s1", "globex"), 1800)
    assert labels.admit(Labels("a", "", "s1", "umbrella"), 3600) == last_resort("umbrella")
    assert labels.sweep(3601)
    wanted = Labels("a", "", "s1", "umbrella")
    assert labels.admit(wanted, 3601) == wanted


def test_a_forgotten_last_resort_makes_room_for_that_of_another_tenant() -> None:
    labels = registry(total=4 * ONE, idle_s=3600)
    for tenant in ("acme", "globex", "umbrella"):
        flood(labels, tenant)
    assert last_resort("acme") in set(labels)
    assert last_resort("umbrella") not in set(labels)
    labels.sweep(3601)
    labels.admit(Labels("b", "", "s1", "acme"), 3601)
    flood(labels, "umbrella")
    assert last_resort("umbrella") in set(labels)


def test_an_idle_version_makes_room_in_the_total() -> None:
    labels = registry(total=3 * ONE, tenants=(), max_versions=1)  # of which 6 is set aside
    labels.admit(Labels("a", "v1", "s1"), 0)
    wanted = Labels("a", "v2", "s1")
    assert labels.admit(wanted, VERSION_IDLE_S + 1) == wanted


SENT = st.lists(
    st.tuples(
        st.sampled_from([*sorted(TENANTS), "hooli"]),
        st.sampled_from(["", "a", "b", "c", OTHER]),
        st.sampled_from(["", "v1", "v2", "v3"]),
        st.sampled_from(["", "s1", "s2", "unknown"]),
        st.integers(1, 3),
    ),
    max_size=60,
)


def size(labels: Iterable[Labels], metrics: int, weights: dict[Labels, int]) -> int:
    """The room that labels take, as the documentation defines it."""
    held = set(labels)
    pairs = {(one.tenant, one.agent, one.agent_version) for one in held}
    series = (metrics if one.is_overflow else weights.get(one, metrics) for one in held)
    return sum(series) + AGENT_VERSION_WEIGHT * len(pairs)


@settings(deadline=None)
@example([("acme", "", "", "", 1), ("acme", "", "", "s1", 1)], 7, 3, Random(0))
@given(SENT, st.integers(1, 150), st.integers(3, 4), st.randoms(use_true_random=False))
def test_the_total_holds_and_a_restart_restores_the_same_labels(
    sent: list[tuple[str, str, str, str, int]], total: int, metrics: int, chance: Random
) -> None:
    labels = registry(total, metrics=metrics)
    labels.configure(["s1", "s2"], metrics=metrics)
    weights: dict[Labels, int] = {}
    for now, (tenant, agent, version, scenario, weight) in enumerate(sent):
        names = Labels(agent, version, scenario, tenant)
        shown = labels.admit(names, now, weight)
        weights.setdefault(shown, weight)
        assert shown in set(labels)
        assert all(part in {name, OTHER} for part, name in zip(shown, names, strict=True))
        assert size(labels, metrics, weights) <= max(total, metrics + AGENT_VERSION_WEIGHT)
    uses = [LabelUse(one, chance.randrange(100), weights[one]) for one in labels]
    chance.shuffle(uses)
    restarted = registry(total, metrics=metrics)
    restarted.configure(["s1", "s2"], metrics=metrics)
    restarted.restore(uses, 100)
    assert set(restarted) == set(labels)
    labels.configure(["s1", "s2"], metrics=metrics)
    assert set(labels) == set(restarted)


@settings(deadline=None)
@given(SENT, st.integers(100, 200))
def test_a_tenant_is_never_refused_its_share(
    sent: list[tuple[str, str, str, str, int]], total: int
) -> None:
    labels = registry(total)
    for tenant, agent, version, scenario, weight in sent:
        if tenant != "acme":
            labels.admit(Labels(agent, version, scenario, tenant), 0, weight)
    share = (total - ONE * 5) // 2 // len(TENANTS)
    for number in range(share // ONE):
        names = Labels(f"agent {number}", "", "s1", "acme")
        assert labels.admit(names, 0) == names


def numbered(tenants: int) -> frozenset[str]:
    return frozenset(f"tenant {number}" for number in range(tenants))


CRITERIA = (ANSWER, Criterion("waste", Waste()))


def crowd(harness: SinkHarness, tenants: Iterable[str], agents: int = 4) -> None:
    """An evaluation of each agent of each tenant, one after another."""
    for tenant in sorted(tenants):
        for agent in range(agents):
            harness.now += 1
            harness.publish(1.0, tenant=tenant, agent=f"agent {agent}", agent_version="v1")


def shown(harness: SinkHarness) -> Counter[str]:
    """The number of label sets of a metric, by tenant."""
    return Counter(labels[0] for labels in harness.series("pathgauge_score_count"))


def test_the_exposition_of_many_tenants_is_bounded_and_nothing_is_uncounted() -> None:
    tenants, total = numbered(30), 100
    harness = SinkHarness(
        *CRITERIA, tenants=True, limits=LabelLimits(max_series_total=total, tenants=tenants)
    )
    crowd(harness, tenants)
    room = total // 2 // (2 + AGENT_VERSION_WEIGHT)
    assert len(harness.series("pathgauge_score_count")) == 2 * 2 * room
    assert sum(shown(harness).values()) <= total
    counted = harness.series("pathgauge_evaluations_total")
    assert sum(counted.values()) == len(tenants) * 4 * len(CRITERIA)
    windows = harness.series("pathgauge_score_window_samples")
    assert sum(windows.values()) == len(tenants) * 4 * len(CRITERIA)
    assert len(windows) == 2 * 2 * room
    overflow = harness.series("pathgauge_series_overflow_total")
    assert overflow["total",] == len(tenants) * 4 - room


def durable(total: int, tenants: frozenset[str], **options: Any) -> DurableHarness:
    limits = LabelLimits(max_series_total=total, tenants=tenants)
    return DurableHarness(*CRITERIA, tenants=True, limits=limits, **options)


@pytest.mark.slow
def test_a_restart_keeps_the_same_series_and_the_same_bound() -> None:
    tenants = numbered(30)
    before = durable(100, tenants)
    crowd(before, tenants)
    before.commit()
    after = before.restarted()
    assert after.exposition() == before.exposition()
    for harness in (before, after):
        crowd(harness, tenants, agents=6)
        harness.commit()
    assert after.exposition() == before.exposition()


def test_a_new_version_without_room_is_in_the_windows_of_its_scenarios() -> None:
    """So alerts about the scores of known scenarios go on when a release comes."""
    one_and_last_resort = 2 * (len(CRITERIA) + AGENT_VERSION_WEIGHT)
    harness = durable(one_and_last_resort, numbered(1))
    harness.publish(1.0, tenant="tenant 0", agent_version="v1")
    harness.publish(0.0, tenant="tenant 0", agent_version="v2")
    harness.commit()
    shown = ("tenant 0", "planner", "refund", "answer")
    assert harness.series("pathgauge_score_window_mean")[shown] == 0.5
    assert {labels[:3] for labels in harness.series("pathgauge_score_count")} == {
        ("tenant 0", "planner", "refund"),
        (OTHER, OTHER, OTHER),
    }
    assert harness.series("pathgauge_score_window_mean") == harness.restarted().series(
        "pathgauge_score_window_mean"
    )


def kept(harness: SinkHarness) -> set[tuple[str, ...]]:
    return {labels[:2] for labels in harness.series("pathgauge_score_count")}


def lowered(harness: DurableHarness, total: int, *, restart: bool) -> DurableHarness:
    limits = LabelLimits(max_series_total=total, tenants=harness.options["limits"].tenants)
    if restart:
        return harness.restarted(limits=limits)
    harness.sink.configure(harness.evaluator, harness.references, limits=limits)
    return harness


@pytest.mark.parametrize("restart", [False, True])
def test_of_a_lower_total_the_series_that_were_seen_last_are_kept(restart: bool) -> None:
    tenants = frozenset({"acme", "umbrella"})
    harness = durable(200, tenants)
    crowd(harness, tenants)
    harness.commit()
    assert len(kept(harness)) == 8
    harness = lowered(harness, 41, restart=restart)  # less 15 for last resorts: 5 agents
    harness.commit()
    last = [("umbrella", f"agent {number}") for number in range(4)]
    assert kept(harness) == {*last, ("acme", "agent 3")}
    for name in ("pathgauge_score_window_mean", "pathgauge_threshold"):
        assert {labels[:2] for labels in harness.series(name)} == kept(harness)
    assert {key[1:3] for key in harness.rows if key[0] == "labels_in_use"} == {
        (tenant, agent) for tenant, agent in kept(harness)
    }
    crowd(harness, tenants)
    harness.commit()
    assert kept(harness) == {*last, ("acme", "agent 3"), ("acme", OTHER)}
    assert (
        harness.series("pathgauge_invocations_total")["acme", OTHER, OTHER, "scenario", "ok"] == 3
    )


def test_a_reload_without_limits_keeps_them() -> None:
    harness = durable(40, frozenset({"acme", "umbrella"}))
    crowd(harness, {"acme"}, agents=20)
    before = kept(harness)
    harness.sink.configure(harness.evaluator, harness.references)
    crowd(harness, {"acme"}, agents=20)
    assert kept(harness) == before


@pytest.mark.parametrize("restart", [False, True])
def test_more_criteria_take_more_room(restart: bool) -> None:
    tenants = frozenset({"acme", "umbrella"})
    harness = durable(40, tenants)
    crowd(harness, tenants)
    harness.commit()
    assert kept(harness) == {
        *[("acme", name) for name in ("agent 0", "agent 1", "agent 2", OTHER)],
        *[("umbrella", name) for name in ("agent 0", "agent 1", OTHER)],
    }
    more = (*CRITERIA, Criterion("rating", Rating()), *(Criterion(f"c{n}", Waste()) for n in "12"))
    if restart:
        harness = harness.restarted(*more)
    else:
        harness.sink.configure(Evaluator(more), harness.references)
    harness.commit()
    # Half is set aside for two last resorts. The rest has room for two agents with five criteria.
    assert kept(harness) == {
        ("umbrella", "agent 0"),
        ("umbrella", "agent 1"),
        ("umbrella", OTHER),
    }
    assert len(harness.series("pathgauge_score_count")) == 3 * 5


def test_scenarios_with_criteria_of_their_own_take_room_for_these() -> None:
    references = ReferenceSet(
        [Reference(name, (ReferenceTurn(),)) for name in ("few", "many", "refund")]
    )
    many = tuple(Criterion(f"c{number}", Waste()) for number in range(20))
    harness = SinkHarness(
        ANSWER, references=references, limits=LabelLimits(max_series_total=60, max_agents=1)
    )
    harness.evaluator = Evaluator((ANSWER,), {"many": many})
    harness.sink.configure(harness.evaluator, references)
    for scenario in ("many", "few", "many", "refund"):
        for agent in ("a", "b"):
            harness.publish(1.0, scenario_id=scenario, agent=agent)
    assert len(harness.series("pathgauge_score_count")) <= 60

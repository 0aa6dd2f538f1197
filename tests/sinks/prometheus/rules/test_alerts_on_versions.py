"""The alert about a new version of an agent that scores worse than the previous one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.courses import Course, Values, named
from support.promtool import assert_alerts, needs_promtool

pytestmark = needs_promtool

COURSE = Course(calm=4 * 60, blip=10, gap=10, bad=3 * 60, good=3 * 60, step=10)
AGENT = {"agent": "support"}
SERIES = {**AGENT, "scenario": "refund", "metric": "f1"}
FIRST_SEEN = "pathgauge_agent_version_first_seen_timestamp_seconds"
ALERT = "PathgaugeVersionRegression"

Means = Mapping[str, float]
"""The mean scores of a version by phase. It does not run in the other phases."""


def scores(
    version: str, means: Means, per_minute: float = 0.5, forgotten: bool = False, **labels: str
) -> dict[str, Values]:
    """The series of a version from its first score on. If it is `forgotten`, they end with its last
    score.
    """
    total, count, since = 0.0, 0.0, None
    totals: list[float | None] = []
    counts: list[float | None] = []
    seen: list[float | None] = []
    for step, phase in enumerate(COURSE.phases()):
        if phase == "gap":
            total = count = 0.0
        elif phase in means:
            count += per_minute * COURSE.step
            total += per_minute * COURSE.step * means[phase]
            since = step * COURSE.step * 60.0 if since is None else since
        absent = since is None or phase == "gap" or (forgotten and phase not in means)
        totals.append(None if absent else total)
        counts.append(None if absent else count)
        seen.append(None if absent else since)
    of = {**SERIES, **labels, "agent_version": version}
    return {
        named("pathgauge_score_sum", **of): totals,
        named("pathgauge_score_count", **of): counts,
        named(
            FIRST_SEEN,
            **{key: value for key, value in of.items() if key not in {"scenario", "metric"}},
        ): seen,
        named(
            "pathgauge_metric_info", metric="f1", min="0", max="1", direction="higher_is_better"
        ): COURSE.gauge(1, 1),
    }


OLD = {"calm": 0.9, "bad": 0.9, "good": 0.9}
"""A first version that keeps running beside its successors."""


def deployed(
    version: str, means: Means, per_minute: float = 0.5, **labels: str
) -> dict[str, Values]:
    """A version that is deployed when the bad phase begins."""
    early = COURSE.before // COURSE.step
    series = scores(version, means, per_minute, False, **labels)
    return {
        name: [None] * early + list(of[early:]) if "metric_info" not in name else of
        for name, of in series.items()
    }


def worse(
    by: str = "0.300",
    new: str = "2.0",
    old: str = "1.0",
    means: tuple[float, float] = (0.6, 0.9),
    before: int = 355,
    **labels: str,
) -> tuple[dict[str, str], str]:
    """The alert; `before` is how many scores the old version has."""
    text = (
        f'f1 of agent "support" in scenario "refund" is {means[0]} (mean of 85 scores) in version'
        f" {new} and was {means[1]} (mean of {before} scores) in version {old}."
        f" Chance does not explain the difference of {by}."
    )
    versions = {"agent_version": new, "previous_version": old}
    return {"job": "pathgauge", "severity": "warning", **SERIES, **versions, **labels}, text


def check(folder: Path, series: dict[str, Values], *expected: tuple[dict[str, str], str]) -> None:
    assert_alerts(folder, COURSE, series, ALERT, *expected)


@pytest.mark.parametrize(("forgotten", "before"), [(False, 355), (True, 363)])
def test_a_new_version_that_is_worse_is_an_alert_until_it_is_repaired(
    tmp_path: Path, forgotten: bool, before: int
) -> None:
    """Also if the collector has forgotten the previous version: after a day, or at a restart
    without a store.
    """
    old = scores("1.0", {"calm": 0.9}, forgotten=forgotten)
    repaired = scores("3.0", {"good": 0.9})
    check(tmp_path, {**old, **deployed("2.0", {"bad": 0.6}), **repaired}, worse(before=before))


@pytest.mark.slow
def test_after_a_rollback_there_is_no_alert(tmp_path: Path) -> None:
    old = scores("1.0", {"calm": 0.9, "good": 0.9})
    check(tmp_path, {**old, **deployed("2.0", {"bad": 0.6})}, worse())


@pytest.mark.slow
def test_versions_that_run_at_the_same_time_are_compared(tmp_path: Path) -> None:
    check(tmp_path, {**scores("1.0", OLD), **deployed("2.0", {"bad": 0.6})}, worse(before=445))


@pytest.mark.slow
def test_only_the_previous_version_is_the_baseline(tmp_path: Path) -> None:
    """At the end the newest version is as bad as the previous one, and worse than the first."""
    oldest = scores("0.1", {"calm": 0.95})
    check(
        tmp_path,
        {**oldest, **deployed("0.2", {"bad": 0.3, "good": 0.3}), **scores("0.3", {"good": 0.3})},
        worse("0.650", "0.2", "0.1", (0.3, 0.95)),
    )


@pytest.mark.slow
def test_a_version_that_was_replaced_after_a_few_runs_is_skipped(tmp_path: Path) -> None:
    short = scores("1.1", {"calm": 0.9}, per_minute=0.001)
    later = {
        name: [None if value is None else value + 60 for value in of] if FIRST_SEEN in name else of
        for name, of in short.items()
    }
    check(
        tmp_path,
        {**scores("1.0", {"calm": 0.9}), **later, **deployed("2.0", {"bad": 0.6})},
        worse(),
    )


def test_few_samples_a_small_drop_and_a_first_version_are_no_alert(tmp_path: Path) -> None:
    few = scores("1.0", {"calm": 0.9}, scenario="few") | deployed(
        "2.0", {"bad": 0.3}, per_minute=0.1, scenario="few"
    )
    small = scores("1.0", {"calm": 0.9}, 30, scenario="small") | deployed(
        "2.0", {"bad": 0.86}, 30, scenario="small"
    )
    chance = scores("1.0", {"calm": 0.6}, scenario="chance") | deployed(
        "2.0", {"bad": 0.4}, scenario="chance"
    )
    first = scores("1.0", {"bad": 0.1}, scenario="first", agent="newcomer")
    check(tmp_path, {**few, **small, **chance, **first})


@pytest.mark.slow
def test_tenants_are_separate(tmp_path: Path) -> None:
    one = scores("1.0", {"calm": 0.9}, tenant="one") | deployed("2.0", {"bad": 0.9}, tenant="one")
    two = scores("1.0", {"calm": 0.9}, tenant="two") | deployed("2.0", {"bad": 0.6}, tenant="two")
    labels, text = worse(tenant="two")
    check(
        tmp_path, {**one, **two}, (labels, text.replace('"support"', '"support" of tenant "two"'))
    )

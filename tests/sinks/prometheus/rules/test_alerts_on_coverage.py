"""Alerts about missing scores: each fires in the bad phase and ends after it, and no short
disturbance or restart triggers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from support.courses import Course, Values, named, written
from support.promtool import (
    alert_test,
    always_firing,
    assert_alerts,
    by_range,
    fired,
    needs_promtool,
    rules_for,
    run,
)

pytestmark = needs_promtool

JOB, WARNING = {"job": "pathgauge"}, {"severity": "warning"}
COURSE = Course(blip=2, gap=4, bad=120, good=150, step=2)
DAYS = Course(calm=14 * 60, blip=20, gap=20, bad=3 * 60, good=3 * 60, step=20)


class Case(NamedTuple):
    name: str
    alert: str
    series: Mapping[str, Values]
    labels: dict[str, str]
    description: str
    course: Course = COURSE


def evaluations(
    course: Course, shares: Mapping[str, tuple[float, float]], **labels: str
) -> dict[str, Values]:
    """Two evaluations a minute. `shares`: by outcome, the share in calm and in bad phases."""
    of = {
        "agent": "support",
        "agent_version": "1.0",
        "scenario": "refund",
        "metric": "f1",
        **labels,
    }
    return {
        named("pathgauge_evaluations_total", outcome=outcome, **of): course.counter(
            2 * calm, 2 * bad
        )
        for outcome, (calm, bad) in shares.items()
    }


def invocations(
    course: Course, calm: float = 2, bad: float = 2, match: str = "scenario", **labels: str
) -> dict[str, Values]:
    of = {"agent": "support", "agent_version": "1.0", "match": match, "status": "ok", **labels}
    return {named("pathgauge_invocations_total", **of): course.counter(calm, bad)}


def not_evaluated(
    reason: str,
    calm: float,
    bad: float,
    course: Course = COURSE,
    metric: str = "f1",
    *,
    agent: str = "support",
) -> dict[str, Values]:
    of = {"agent": agent, "metric": metric, "reason": reason}
    return {named("pathgauge_not_evaluated_total", **of): course.counter(calm, bad)}


def setting(agent: str, dialect: str, content_setting: str) -> dict[str, Values]:
    """The setting with which an agent records content."""
    of = {"agent": agent, "dialect": dialect, "content_setting": content_setting}
    return {named("pathgauge_agent_info", **of): COURSE.gauge(1, 1)}


def judged(course: Course = COURSE, calm: float = 0.1, bad: float = 0.1) -> dict[str, Values]:
    """A judge that samples two of forty evaluations a minute and gives `calm` or `bad` verdicts."""
    shares = {"pass": (calm / 2, bad / 2), "not_evaluated": ((40 - calm) / 2, (40 - bad) / 2)}
    return {
        **evaluations(course, shares, metric="quality", judge="gpt-4.1-mini@1f3a9c20"),
        **not_evaluated("not_sampled", 38, 38, course, "quality"),
    }


CASES = [
    Case(
        "a reference is gone",
        "PathgaugeUnmatchedScenarios",
        {
            **invocations(COURSE, 2, 1),
            **invocations(COURSE, 20, 21, match="unmatched"),
            named("pathgauge_invocations_unmatched_total", reason="no_scenario_id"): COURSE.counter(
                20, 20
            ),
            named(
                "pathgauge_invocations_unmatched_total", reason="unknown_scenario"
            ): COURSE.counter(0.04, 1),
        },
        {**JOB, **WARNING, "reason": "unknown_scenario"},
        "50% of the invocations that name a scenario match no reference (unknown_scenario).",
    ),
    Case(
        "no reference at all",
        "PathgaugeUnmatchedScenarios",
        {
            named(
                "pathgauge_invocations_unmatched_total", reason="scenario_conflict"
            ): COURSE.counter(0, 1)
        },
        {**JOB, **WARNING, "reason": "scenario_conflict"},
        "100% of the invocations that name a scenario match no reference (scenario_conflict).",
    ),
    Case(
        "half of an agent's evaluations yield no score",
        "PathgaugeCoverageDrop",
        {
            **invocations(DAYS),
            **evaluations(DAYS, {"pass": (0.9, 0.4), "not_evaluated": (0.1, 0.6)}),
        },
        {**JOB, **WARNING, "agent": "support", "metric": "f1"},
        'The share of evaluations of f1 for agent "support" that yield a score has dropped by'
        f" {by_range('49.21%', '48.81%')}.",
        DAYS,
    ),
    Case(
        "no evaluation yields a score",
        "PathgaugeCoverageDrop",
        {**invocations(COURSE), **evaluations(COURSE, {"pass": (1, 0), "not_evaluated": (0, 1)})},
        {**JOB, **WARNING, "agent": "support"},
        'No evaluation for agent "support" has yielded a score within an hour.',
    ),
    Case(
        "arguments are no longer recorded",
        "PathgaugeContentMissing",
        {
            **evaluations(COURSE, {"pass": (0.9, 0.1), "not_evaluated": (0.1, 0.9)}),
            **not_evaluated("args_not_recorded", 0.1, 1),
            **not_evaluated("not_applicable", 0.1, 0.8),
            **setting("support", "haystack", "HAYSTACK_CONTENT_TRACING_ENABLED=true"),
            **setting("other", "adk", "X=1"),
        },
        {
            **JOB,
            **WARNING,
            "agent": "support",
            "metric": "f1",
            "reason": "args_not_recorded",
        },
        '83.33% of the evaluations of f1 for agent "support" yielded no score (args_not_recorded);'
        " its spans are of the dialect haystack, which records content with"
        " HAYSTACK_CONTENT_TRACING_ENABLED=true.",
    ),
    Case(
        "one of twenty agents no longer records its answers",
        "PathgaugeContentMissing",
        {
            **evaluations(COURSE, {"pass": (1, 0.7), "not_evaluated": (0, 0.3)}, agent="quiet"),
            **not_evaluated("response_not_recorded", 0, 0.6, agent="quiet"),
            **evaluations(COURSE, {"pass": (19, 19)}, agent="all others"),
        },
        {
            **JOB,
            **WARNING,
            "agent": "quiet",
            "metric": "f1",
            "reason": "response_not_recorded",
        },
        '30% of the evaluations of f1 for agent "quiet" yielded no score (response_not_recorded).',
    ),
    Case(
        "an agent whose tools were never seen",
        "PathgaugeContentMissing",
        {
            **evaluations(COURSE, {"pass": (1, 0.5), "not_evaluated": (0, 0.5)}),
            **not_evaluated("tools_not_recorded", 0, 1),
            **setting("support", "genai", "X=1"),
        },
        {**JOB, **WARNING, "agent": "support", "metric": "f1", "reason": "tools_not_recorded"},
        '50% of the evaluations of f1 for agent "support" yielded no score (tools_not_recorded).',
    ),
    Case(
        "content is truncated",
        "PathgaugeTelemetryIncomplete",
        {
            named(
                "pathgauge_invocation_flags_total", dialect="genai", flag="truncated"
            ): COURSE.counter(0.1, 1),
            named(
                "pathgauge_invocation_flags_total", dialect="genai", flag="redacted"
            ): COURSE.counter(2, 2),
            named("pathgauge_invocations_read_total", dialect="genai"): COURSE.counter(2, 2),
        },
        {**JOB, "severity": "info", "dialect": "genai", "flag": "truncated"},
        "50% of the invocations in dialect genai have the flag truncated.",
    ),
    Case(
        "a scorer fails",
        "PathgaugeEvaluationErrors",
        evaluations(COURSE, {"pass": (1, 0.75), "error": (0, 0.25)}),
        {**JOB, **WARNING, "metric": "f1"},
        '25% of the evaluations of f1 ended in a scorer error. The log says "scorer failed", and'
        " where.",
    ),
    Case(
        "a judge is unavailable",
        "PathgaugeJudgeErrors",
        {
            **judged(COURSE, 1.9, 1),
            **not_evaluated("judge_unavailable", 0.1, 1, metric="quality"),
            **not_evaluated("judge_unconfigured", 40, 40, metric="other"),
        },
        {**JOB, **WARNING, "metric": "quality", "reason": "judge_unavailable"},
        "50% of the evaluations that quality should judge have no verdict (judge_unavailable).",
    ),
    Case(
        "a judge fails while a budget leaves out most evaluations",
        "PathgaugeJudgeErrors",
        {
            **judged(COURSE, 0.5, 0),
            **not_evaluated("budget", 1.5, 1.5, metric="quality"),
            **not_evaluated("judge_malformed", 0, 0.5, metric="quality"),
        },
        {**JOB, **WARNING, "metric": "quality", "reason": "judge_malformed"},
        "100% of the evaluations that quality should judge have no verdict (judge_malformed).",
    ),
    Case(
        "a budget is used up",
        "PathgaugeJudgeBudgetUsedUp",
        {
            **judged(COURSE, 1.8, 0.5),
            **not_evaluated("budget", 0.1, 1, metric="quality"),
            **not_evaluated("judge_timeout", 0.1, 0.5, metric="quality"),
        },
        {**JOB, **WARNING, "metric": "quality", "reason": "budget"},
        "50% of the evaluations that quality should judge have no verdict because a budget is used"
        " up.",
    ),
    Case(
        "a sampled judge lacks responses",
        "PathgaugeContentMissing",
        {
            **judged(COURSE, 1.9, 1),
            **not_evaluated("response_not_recorded", 0.1, 1, metric="quality"),
        },
        {
            **JOB,
            **WARNING,
            "agent": "support",
            "metric": "quality",
            "reason": "response_not_recorded",
        },
        '50% of the evaluations of quality for agent "support" yielded no score'
        " (response_not_recorded).",
    ),
    Case(
        "a sampled judge raises errors",
        "PathgaugeEvaluationErrors",
        {
            **judged(COURSE, 1.98, 1.5),
            **evaluations(
                COURSE, {"error": (0.01, 0.25)}, metric="quality", judge="gpt-4.1-mini@1f3a9c20"
            ),
        },
        {**JOB, **WARNING, "metric": "quality"},
        '20% of the evaluations of quality ended in a scorer error. The log says "scorer failed",'
        " and where.",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_alert_fires_and_ends_and_ignores_disturbances_and_restarts(
    case: Case, tmp_path: Path
) -> None:
    assert_alerts(tmp_path, case.course, case.series, case.alert, (case.labels, case.description))


@pytest.mark.slow
def test_little_traffic_and_constantly_low_coverage_are_no_alert(tmp_path: Path) -> None:
    always = {
        **invocations(DAYS),
        **evaluations(DAYS, {"pass": (0.3, 0.3), "not_evaluated": (0.7, 0.7)}),
    }
    little = {
        **invocations(DAYS, 0.1, 0.1, agent="other"),
        **evaluations(DAYS, {"pass": (0.05, 0), "not_evaluated": (0, 0.05)}, agent="other"),
    }
    assert_alerts(tmp_path, DAYS, {**always, **little}, "PathgaugeCoverageDrop")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reason", "share"),
    [
        ("response_not_recorded", 0.6),
        ("response_not_recorded", 1),
        ("not_applicable", 0.6),
        ("lost_telemetry", 0.6),
    ],
)
def test_missing_content_lost_spans_and_metrics_that_do_not_apply_are_no_coverage_drop(
    reason: str, share: float, tmp_path: Path
) -> None:
    """Missing content and lost spans have alerts of their own."""
    series = {
        **invocations(DAYS),
        **evaluations(DAYS, {"pass": (1, 1 - share), "not_evaluated": (0, share)}),
        **not_evaluated(reason, 0, 2 * share, DAYS),
    }
    assert_alerts(tmp_path, DAYS, series, "PathgaugeCoverageDrop")


def test_missing_content_of_a_tenth_of_the_evaluations_is_no_alert(tmp_path: Path) -> None:
    series = {
        **evaluations(COURSE, {"pass": (1, 0.9), "not_evaluated": (0, 0.1)}),
        **not_evaluated("response_not_recorded", 0, 0.2),
    }
    assert_alerts(tmp_path, COURSE, series, "PathgaugeContentMissing")


@pytest.mark.slow
def test_the_coverage_of_each_metric_of_an_agent_is_compared(tmp_path: Path) -> None:
    """All metrics together would drop by less than a tenth."""
    series = {
        **invocations(DAYS),
        **evaluations(DAYS, {"pass": (1, 0.5), "error": (0, 0.5)}),
        **{
            name: values
            for number in range(9)
            for name, values in evaluations(
                DAYS, {"pass": (1, 1)}, metric=f"metric {number}"
            ).items()
        },
    }
    assert_alerts(
        tmp_path,
        DAYS,
        series,
        "PathgaugeCoverageDrop",
        (
            {**JOB, **WARNING, "agent": "support", "metric": "f1"},
            'The share of evaluations of f1 for agent "support" that yield a score has dropped by'
            f" {by_range('49.21%', '49.2%')}.",
        ),
    )


@pytest.mark.slow
def test_a_criterion_that_a_judge_takes_over_in_some_scenarios_is_no_coverage_drop(
    tmp_path: Path,
) -> None:
    """The criteria of a scenario may have another scorer under the same name."""
    of_judge = {"scenario": "billing", "judge": "gpt-4.1-mini@1f3a9c20"}
    series = {
        **invocations(DAYS),
        **evaluations(DAYS, {"pass": (1, 0.5)}),
        **evaluations(DAYS, {"pass": (0, 0.5)}, **of_judge),
    }
    assert_alerts(tmp_path, DAYS, series, "PathgaugeCoverageDrop")


@pytest.mark.parametrize(
    ("alert", "reason"),
    [
        ("PathgaugeJudgeErrors", "judge_unavailable"),
        ("PathgaugeJudgeBudgetUsedUp", "budget"),
    ],
)
@pytest.mark.parametrize(("outage", "fires"), [(5, False), (20, True)])
def test_a_judge_that_gives_verdicts_again_before_the_alert_raises_none(
    outage: int, fires: bool, alert: str, reason: str, tmp_path: Path
) -> None:
    """What it left out stays in the range of the rule for half an hour."""
    course = Course(calm=60, blip=0, gap=0, bad=outage, good=60)
    series = {**judged(course, 4, 0), **not_evaluated(reason, 0, 4, course, "quality")}
    test = {
        "interval": "1m",
        "input_series": written(series),
        "promql_expr_test": [fired(alert, course.end, course.end)],
    }
    assert (run(tmp_path, rules_for(alert), test) != "SUCCESS") is fires


@pytest.mark.slow
@pytest.mark.parametrize(
    "alert",
    [
        "PathgaugeCoverageDrop",
        "PathgaugeContentMissing",
        "PathgaugeJudgeErrors",
        "PathgaugeJudgeBudgetUsedUp",
    ],
)
def test_lower_sampling_by_judges_is_no_alert(alert: str, tmp_path: Path) -> None:
    """A sample rate is lowered, and set to 0 for an agent whose metrics are all judged."""
    lowered = evaluations(
        DAYS,
        {"pass": (0.9, 0.05), "not_evaluated": (0.1, 0.95)},
        metric="quality",
        judge="gpt-4.1-mini@1f3a9c20",
    )
    alone = evaluations(
        DAYS,
        {"pass": (0.9, 0), "not_evaluated": (0.1, 1)},
        agent="judged",
        metric="safety",
        judge="m@1",
    )
    series = {
        **invocations(DAYS),
        **evaluations(DAYS, {"pass": (0.9, 0.9), "not_evaluated": (0.1, 0.1)}),
        **lowered,
        **not_evaluated("not_sampled", 0.2, 1.9, DAYS, "quality"),
        **invocations(DAYS, agent="judged"),
        **alone,
        **not_evaluated("not_sampled", 0.2, 2, DAYS, "safety", agent="judged"),
    }
    assert_alerts(tmp_path, DAYS, series, alert)


SILENCE = Course(calm=70, bad=90, good=30)
INTERVAL, LAST, SINCE = (
    "pathgauge_expected_interval_seconds",
    "pathgauge_last_evaluation_timestamp_seconds",
    "pathgauge_expected_since_timestamp_seconds",
)


def last_evaluation(course: Course, *of: str) -> Values:
    """The time of the last evaluation, with evaluations every minute in these phases only."""
    last, values = None, []
    for step, phase in enumerate(course.phases()):
        last = step * 60.0 if phase in of else last
        values.append(None if phase == "gap" else last)
    return values


def silent(scenario: str, since: str, **labels: str) -> tuple[dict[str, str], str]:
    tenant = f' of tenant "{labels["tenant"]}"' if "tenant" in labels else ""
    return {
        **JOB,
        **WARNING,
        "scenario": scenario,
        **labels,
    }, f'Scenario "{scenario}"{tenant} has had no score for {since}.'


def hourly(scenario: str, **labels: str) -> dict[str, Values]:
    return {named(INTERVAL, scenario=scenario, **labels): SILENCE.gauge(3600, 3600)}


def test_silence_is_an_alert_only_for_scenarios_with_an_expected_interval(tmp_path: Path) -> None:
    series = {
        named(SINCE, scenario="refund"): SILENCE.running_since(),
        **hourly("refund"),
        named(LAST, agent="support", scenario="refund"): last_evaluation(SILENCE, "calm", "good"),
        named(LAST, agent="former", scenario="refund"): [
            None if value is None else 0.0 for value in SILENCE.gauge(1, 1)
        ],
        named(LAST, agent="support", scenario="unexpected"): last_evaluation(
            SILENCE, "calm", "good"
        ),
    }
    assert_alerts(
        tmp_path, SILENCE, series, "PathgaugeNoRecentEvaluations", silent("refund", "1h 30m 0s")
    )


def test_a_never_evaluated_scenario_is_silent_since_the_start_of_the_oldest_collector(
    tmp_path: Path,
) -> None:
    series = {
        named(SINCE, scenario="refund"): SILENCE.running_since(),
        named(SINCE, scenario="refund", instance="b:9464"): SILENCE.gauge(
            SILENCE.turning * 60, SILENCE.turning * 60
        ),
        named(SINCE, scenario="refund", job="other"): SILENCE.gauge(0, 0, gap=0),
        **hourly("refund"),
        named(LAST, agent="support", scenario="refund"): last_evaluation(SILENCE, "good"),
    }
    test = alert_test(
        SILENCE, series, "PathgaugeNoRecentEvaluations", silent("refund", "2h 39m 0s")
    )
    restarted = 2 * SILENCE.calm + SILENCE.blip + SILENCE.gap
    kept = 10 - SILENCE.gap  # minutes after the restart, of an alert that fired before
    test["promql_expr_test"] = [
        {**fired("PathgaugeNoRecentEvaluations", minutes, at), "exp_samples": []}
        for minutes, at in ((64, 64), (60 - kept, restarted + 61))
    ]
    assert run(tmp_path, rules_for("PathgaugeNoRecentEvaluations"), test) == "SUCCESS"


def test_a_scenario_that_a_reload_brings_has_its_interval_for_its_first_score(
    tmp_path: Path,
) -> None:
    """The collector has run for two hours then."""
    added = 120
    series: dict[str, Values] = {
        named("process_start_time_seconds"): [0.0] * 300,
        named(INTERVAL, scenario="new"): [None] * added + [3600.0] * (300 - added),
        named(SINCE, scenario="new"): [None] * added + [added * 60.0] * (300 - added),
    }
    alert = "PathgaugeNoRecentEvaluations"
    firing = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    test = {
        "interval": "1m",
        "input_series": written(series),
        "promql_expr_test": [
            {**fired(alert, added + 65, added + 65), "exp_samples": []},
            {"expr": firing, "eval_time": f"{added + 71}m"}
            | {"exp_samples": [{"labels": "{}", "value": 1}]},
        ],
    }
    assert run(tmp_path, rules_for(alert), test) == "SUCCESS"


def test_a_restart_does_not_end_the_silence_of_a_scenario(tmp_path: Path) -> None:
    """It would page twice: the collector says nothing about scenarios while it is away."""
    away: Values = [1.0] * 120 + [None] * 3 + [1.0] * 30
    series: dict[str, Values] = {
        named(INTERVAL, scenario="refund"): [value and 3600.0 for value in away],
        named(LAST, agent="support", scenario="refund"): [value and 0.0 for value in away],
    }
    alert = "PathgaugeNoRecentEvaluations"
    assert run(tmp_path, rules_for(alert), always_firing(alert, series, 100, 150)) == "SUCCESS"


def test_silence_is_measured_for_each_tenant(tmp_path: Path) -> None:
    series = {
        named(SINCE, scenario="refund", tenant="one"): SILENCE.running_since(),
        named(SINCE, scenario="refund", tenant="two"): SILENCE.running_since(),
        **hourly("refund", tenant="one"),
        **hourly("refund", tenant="two"),
        named(LAST, agent="support", scenario="refund", tenant="one"): last_evaluation(
            SILENCE, "calm", "bad", "good"
        ),
        named(LAST, agent="support", scenario="refund", tenant="two"): last_evaluation(
            SILENCE, "calm", "good"
        ),
    }
    assert_alerts(
        tmp_path,
        SILENCE,
        series,
        "PathgaugeNoRecentEvaluations",
        silent("refund", "1h 30m 0s", tenant="two"),
    )

"""Alerts about what is not scored: each fires when it should, and neither in a short disturbance
nor by a restart, and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from support.courses import Course, Values, named
from support.promtool import fired, needed, needs_promtool, run, story

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
    """Two evaluations a minute, of which these shares have these outcomes when all is well, and
    when not.
    """
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
    reason: str, calm: float, bad: float, course: Course = COURSE, metric: str = "f1"
) -> dict[str, Values]:
    return {
        named("pathgauge_not_evaluated_total", metric=metric, reason=reason): course.counter(
            calm, bad
        )
    }


def judged(course: Course = COURSE, calm: float = 0.1, bad: float = 0.1) -> dict[str, Values]:
    """A judge that sees two evaluations a minute in forty, and gives so many verdicts on them."""
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
        "50% of the invocations that name a scenario have no reference (unknown_scenario).",
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
        "100% of the invocations that name a scenario have no reference (scenario_conflict).",
    ),
    Case(
        "half of an agent's evaluations give no score any more",
        "PathgaugeCoverageDrop",
        {
            **invocations(DAYS),
            **evaluations(DAYS, {"pass": (0.9, 0.4), "not_evaluated": (0.1, 0.6)}),
        },
        {**JOB, **WARNING, "agent": "support"},
        'The share of evaluations of agent "support" that give a score is lower by 49.21%.',
        DAYS,
    ),
    Case(
        "nothing has a score any more",
        "PathgaugeCoverageDrop",
        {**invocations(COURSE), **evaluations(COURSE, {"pass": (1, 0), "not_evaluated": (0, 1)})},
        {**JOB, **WARNING, "agent": "support"},
        'The share of evaluations of agent "support" that give a score is lower by 100%.',
    ),
    Case(
        "arguments are not recorded any more",
        "PathgaugeContentMissing",
        {
            **evaluations(COURSE, {"pass": (0.9, 0.1), "not_evaluated": (0.1, 0.9)}),
            **not_evaluated("args_not_recorded", 0.1, 1),
            **not_evaluated("not_applicable", 1, 1),
        },
        {**JOB, **WARNING, "metric": "f1", "reason": "args_not_recorded"},
        "50% of the evaluations of f1 gave no score (args_not_recorded).",
    ),
    Case(
        "content is cut",
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
        "50% of the invocations in dialect genai are flagged truncated.",
    ),
    Case(
        "a scorer fails",
        "PathgaugeEvaluationErrors",
        evaluations(COURSE, {"pass": (1, 0.75), "error": (0, 0.25)}),
        {**JOB, **WARNING, "metric": "f1"},
        "25% of the evaluations of f1 ended in an error of the scorer.",
    ),
    Case(
        "a judge is not reached",
        "PathgaugeJudgeErrors",
        {
            **judged(COURSE, 1.9, 1),
            **not_evaluated("judge_unavailable", 0.1, 1, metric="quality"),
            **not_evaluated("judge_unconfigured", 40, 40, metric="other"),
        },
        {**JOB, **WARNING, "metric": "quality", "reason": "judge_unavailable"},
        "50% of what quality was to judge has no verdict (judge_unavailable).",
    ),
    Case(
        "what a judge is asked fails while most is left out for a budget",
        "PathgaugeJudgeErrors",
        {
            **judged(COURSE, 0.5, 0),
            **not_evaluated("budget", 1.5, 1.5, metric="quality"),
            **not_evaluated("judge_malformed", 0, 0.5, metric="quality"),
        },
        {**JOB, **WARNING, "metric": "quality", "reason": "judge_malformed"},
        "100% of what quality was to judge has no verdict (judge_malformed).",
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
        "50% of what quality was to judge has no verdict, as a budget is used up.",
    ),
    Case(
        "responses are not recorded any more, of which a judge sees a few",
        "PathgaugeContentMissing",
        {
            **judged(COURSE, 1.9, 1),
            **not_evaluated("response_not_recorded", 0.1, 1, metric="quality"),
        },
        {**JOB, **WARNING, "metric": "quality", "reason": "response_not_recorded"},
        "50% of the evaluations of quality gave no score (response_not_recorded).",
    ),
    Case(
        "a judge fails, which sees a few",
        "PathgaugeEvaluationErrors",
        {
            **judged(COURSE, 1.98, 1.5),
            **evaluations(
                COURSE, {"error": (0.01, 0.25)}, metric="quality", judge="gpt-4.1-mini@1f3a9c20"
            ),
        },
        {**JOB, **WARNING, "metric": "quality"},
        "20% of the evaluations of quality ended in an error of the scorer.",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_fires_and_ends_and_no_disturbance_or_restart_fires_it(
    case: Case, tmp_path: Path
) -> None:
    told = story(case.course, case.series, case.alert, (case.labels, case.description))
    assert run(tmp_path, needed(case.alert), told, step=case.course.step) == "SUCCESS"


def test_little_traffic_and_a_coverage_that_always_was_low_are_no_alert(tmp_path: Path) -> None:
    always = {
        **invocations(DAYS),
        **evaluations(DAYS, {"pass": (0.3, 0.3), "not_evaluated": (0.7, 0.7)}),
    }
    little = {
        **invocations(DAYS, 0.1, 0.1, agent="other"),
        **evaluations(DAYS, {"pass": (0.05, 0), "not_evaluated": (0, 0.05)}, agent="other"),
    }
    told = story(DAYS, {**always, **little}, "PathgaugeCoverageDrop")
    assert run(tmp_path, needed("PathgaugeCoverageDrop"), told, step=DAYS.step) == "SUCCESS"


@pytest.mark.parametrize(
    "alert",
    [
        "PathgaugeCoverageDrop",
        "PathgaugeContentMissing",
        "PathgaugeJudgeErrors",
        "PathgaugeJudgeBudgetUsedUp",
    ],
)
def test_what_judges_do_not_see_by_choice_is_no_alert(alert: str, tmp_path: Path) -> None:
    """A sample rate is lowered, and set to 0 for an agent of which all metrics are judged."""
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
        **not_evaluated("not_sampled", 0.2, 2, DAYS, "safety"),
    }
    assert run(tmp_path, needed(alert), story(DAYS, series, alert), step=DAYS.step) == "SUCCESS"


SILENCE = Course(calm=70, bad=90, good=30)
INTERVAL, LAST, START = (
    "pathgauge_expected_interval_seconds",
    "pathgauge_last_evaluation_timestamp_seconds",
    "process_start_time_seconds",
)


def last_evaluation(course: Course, *of: str) -> Values:
    """The time of the last evaluation, where there are some every minute in these phases."""
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
    }, f'Scenario "{scenario}"{tenant} had no score for {since}.'


def hourly(scenario: str, **labels: str) -> dict[str, Values]:
    return {named(INTERVAL, scenario=scenario, **labels): SILENCE.gauge(3600, 3600)}


def test_a_scenario_that_is_silent_for_longer_than_expected_is_an_alert_and_one_of_which_nothing_is_expected_is_not(
    tmp_path: Path,
) -> None:
    series = {
        named(START): SILENCE.running_since(),
        **hourly("refund"),
        named(LAST, agent="support", scenario="refund"): last_evaluation(SILENCE, "calm", "good"),
        named(LAST, agent="former", scenario="refund"): [
            None if value is None else 0.0 for value in SILENCE.gauge(1, 1)
        ],
        named(LAST, agent="support", scenario="unexpected"): last_evaluation(
            SILENCE, "calm", "good"
        ),
    }
    told = story(SILENCE, series, "PathgaugeNoRecentEvaluations", silent("refund", "1h 30m 0s"))
    assert run(tmp_path, needed("PathgaugeNoRecentEvaluations"), told) == "SUCCESS"


def test_a_scenario_that_was_never_evaluated_is_silent_since_the_start_of_the_collector_that_runs_longest(
    tmp_path: Path,
) -> None:
    series = {
        named(START): SILENCE.running_since(),
        named(START, instance="b:9464"): SILENCE.gauge(SILENCE.turning * 60, SILENCE.turning * 60),
        named(START, job="other"): SILENCE.gauge(0, 0, gap=0),
        **hourly("refund"),
        named(LAST, agent="support", scenario="refund"): last_evaluation(SILENCE, "good"),
    }
    told = story(SILENCE, series, "PathgaugeNoRecentEvaluations", silent("refund", "2h 39m 0s"))
    restarted = 2 * SILENCE.calm + SILENCE.blip + SILENCE.gap
    told["promql_expr_test"] = [
        {**fired("PathgaugeNoRecentEvaluations", minutes, at), "exp_samples": []}
        for minutes, at in ((64, 64), (60, restarted + 61))
    ]
    assert run(tmp_path, needed("PathgaugeNoRecentEvaluations"), told) == "SUCCESS"


def test_each_tenant_may_be_silent_by_itself(tmp_path: Path) -> None:
    series = {
        named(START): SILENCE.running_since(),
        **hourly("refund", tenant="one"),
        **hourly("refund", tenant="two"),
        named(LAST, agent="support", scenario="refund", tenant="one"): last_evaluation(
            SILENCE, "calm", "bad", "good"
        ),
        named(LAST, agent="support", scenario="refund", tenant="two"): last_evaluation(
            SILENCE, "calm", "good"
        ),
    }
    told = story(
        SILENCE, series, "PathgaugeNoRecentEvaluations", silent("refund", "1h 30m 0s", tenant="two")
    )
    assert run(tmp_path, needed("PathgaugeNoRecentEvaluations"), told) == "SUCCESS"

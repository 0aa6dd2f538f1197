"""The overview: how every agent does in every scenario, at a glance, and what fires."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from generator.panels import (
    BAD,
    BREACHED,
    FAIR,
    ZERO_IS_GOOD,
    Panels,
    States,
    alerts,
    board,
    coloured,
    figure,
    graph,
    lines,
    linked,
    listing,
    timeline,
    to_scenario,
)
from generator.queries import (
    AGENT,
    ALERTS,
    BASELINE,
    COMPARED,
    EVALUATED,
    FIRING,
    METRIC,
    OF_AGENT,
    OF_SCENARIO,
    OF_SCORE,
    P_VALUE,
    RECENT,
    SCENARIO,
    SERIES,
    TENANT,
    WINDOW_MEAN,
    Query,
    datasource,
    rate,
    share,
)

INVOCATIONS = "pathgauge_invocations_total"
ALERT_STATES: States = {"firing": ("firing", BAD), "pending": ("pending", FAIR)}
PASSED, JUDGED = 'outcome="pass"', 'outcome=~"pass|fail"'
BREACHES = f"max by ({SERIES}) (pathgauge_threshold_breached{{{OF_SCORE}}})"
THRESHOLD = f"max by ({SERIES}) (pathgauge_threshold{{{OF_SCORE}}})"
OBJECTIVE = f"max by ({SERIES}) (pathgauge_objective{{{OF_SCORE}}})"
OF_INTERVAL = 'scenario=~"$scenario", tenant=~"$tenant"'
SILENCE = (
    "(time() - max by (tenant, agent, scenario)"
    f" (pathgauge_last_evaluation_timestamp_seconds{{{OF_SCENARIO}}})) * on (tenant, agent,"
    f" scenario) group_right group by ({SERIES}) (pathgauge_threshold{{{OF_SCORE}}})"
)


def build() -> Dashboard:
    """The dashboard."""
    page = board(
        "pathgauge-overview",
        "pathgauge / Overview",
        "Scores of every agent in every scenario beside their thresholds, and alerts.",
    )
    for variable in (datasource(), AGENT, SCENARIO, METRIC, TENANT):
        page = page.with_variable(variable)
    rows = {
        "At a glance": _figures(),
        "Health": _health(),
        "Regressions": _regressions(),
        "Promises": _promises(),
        "Over time": _graphs(),
        "Alerts": _alerts(),
    }
    return lines(page, rows)


def _figures() -> Panels:
    invocations = f"sum(rate({INVOCATIONS}{{{OF_AGENT}}}[$__range]))"
    return [
        figure(
            "Below threshold",
            "Agents and scenarios of which at least one metric is on the wrong side of its"
            " threshold, with enough samples.",
            f"count(max by (tenant, agent, scenario) (pathgauge_threshold_breached{{{OF_SCORE}}})"
            " == 1) or vector(0)",
            "none",
            ZERO_IS_GOOD,
        ),
        figure(
            "Firing alerts",
            "Alerts of pathgauge that fire now.",
            f"count({FIRING}) or vector(0)",
            "none",
            ZERO_IS_GOOD,
        ),
        figure(
            "Scenarios with scores",
            "Agents and scenarios that have recent scores. A window without a new score leaves"
            " after `windows.stale_after`.",
            "count(group by (tenant, agent, scenario)"
            f" (pathgauge_score_window_samples{{{OF_SCORE}}}))",
            "none",
        ),
        figure(
            "Pass rate",
            "Verdicts that passed, of those that passed or failed, in the time range. What could"
            " not be judged is neither.",
            share(EVALUATED, OF_SCORE, PASSED, JUDGED, window="$__range"),
            "percentunit",
        ),
        figure(
            "Invocations", "Evaluated invocations a second, in the time range.", invocations, "cps"
        ),
        figure(
            "Without reference",
            "Invocations that no reference was found for, in the time range. Only scorers that need"
            " no reference judge them.",
            share(INVOCATIONS, OF_AGENT, 'match!="scenario"', "", window="$__range"),
            "percentunit",
        ),
    ]


def _health() -> Panels:
    table = listing(
        "Health of every agent and scenario",
        "The mean of the recent scores in the scale of the metric, beside its threshold. Metrics of"
        " which less is better breach upwards.",
        {
            "state": (BREACHES, "none"),
            "mean": (WINDOW_MEAN, "none"),
            "threshold": (THRESHOLD, "none"),
            "lowest": (f"min by ({SERIES}) (pathgauge_score_window_min{{{OF_SCORE}}})", "none"),
            "samples": (
                f"sum by ({SERIES}) (pathgauge_score_window_samples{{{OF_SCORE}}})",
                "short",
            ),
            "pass rate": (
                share(EVALUATED, OF_SCORE, PASSED, JUDGED, SERIES, window="$__range"),
                "percentunit",
            ),
            "last score": (SILENCE, "s"),
        },
    )
    table = linked(
        coloured(table, "state", BREACHED),
        "scenario",
        "Show this scenario",
        to_scenario("agent", "scenario", "metric"),
    )
    breaches = timeline(
        "Breaches of thresholds",
        "Red while the window mean was on the wrong side of its threshold. A gap is a window"
        " without recent scores.",
        Query(BREACHES, "{{agent}} / {{scenario}} / {{metric}} {{judge}}"),
        BREACHED,
    )
    return [table, breaches]


def _regressions() -> Panels:
    table = listing(
        "Recent scores beside those of the version before and of a week ago",
        "p: the probability of a change for the worse at least as large when nothing has changed;"
        " empty where samples are too few.",
        {
            "p": (P_VALUE, "none"),
            "recent": (RECENT, "none"),
            "baseline score": (BASELINE, "none"),
            "recent samples": (
                f"sum by ({COMPARED}) (pathgauge_regression_samples{{{OF_SCORE}}})",
                "short",
            ),
            "baseline samples": (
                f"sum by ({COMPARED}) (pathgauge_baseline_samples{{{OF_SCORE}}})",
                "short",
            ),
        },
    )
    return [
        linked(table, "scenario", "Show this scenario", to_scenario("agent", "scenario", "metric"))
    ]


def _promises() -> Panels:
    passed = share(EVALUATED, OF_SCORE, PASSED, JUDGED, SERIES, window="$__range")
    failed = share(EVALUATED, OF_SCORE, 'outcome="fail"', JUDGED, SERIES, window="$__range")
    silence = (
        "time() - max by (tenant, scenario)"
        f" (pathgauge_last_evaluation_timestamp_seconds{{{OF_INTERVAL}}})"
    )
    return [
        listing(
            "Objectives",
            "Criteria with an objective: the share of passes in the time range, and how many times"
            " faster than allowed failures come.",
            {
                "objective": (OBJECTIVE, "percentunit"),
                "pass rate": (f"{passed} and on ({SERIES}) {OBJECTIVE}", "percentunit"),
                "burn rate": (f"{failed} / on ({SERIES}) (1 - {OBJECTIVE})", "none"),
            },
            width=12,
        ),
        listing(
            "Silence of scenarios",
            "Time since the last score of each scenario by any agent, beside how often there should"
            " be one. Empty: there never was one.",
            {
                "last score": (silence, "s"),
                "expected every": (
                    (
                        "max by (tenant, scenario)"
                        f" (pathgauge_expected_interval_seconds{{{OF_INTERVAL}}})"
                    ),
                    "s",
                ),
            },
            width=12,
        ),
    ]


def _graphs() -> Panels:
    return [
        graph(
            "Pass rate by agent and scenario",
            "Verdicts that passed, of those that passed or failed, over all metrics chosen above.",
            "percentunit",
            Query(
                share(EVALUATED, OF_SCORE, PASSED, JUDGED, "tenant, agent, scenario"),
                "{{agent}} / {{scenario}}",
                exemplar=True,
            ),
            most=1,
        ),
        graph(
            "Invocations by agent",
            "Evaluated invocations a second, and how many of them ended in an error.",
            "cps",
            Query(rate(INVOCATIONS, OF_AGENT, "tenant, agent"), "{{agent}}"),
            Query(
                rate(INVOCATIONS, f'{OF_AGENT}, status="error"', "tenant, agent"),
                "{{agent}} errors",
            ),
        ),
    ]


def _alerts() -> Panels:
    table = listing(
        "Pathgauge alerts, as Prometheus has them",
        "Pending and firing alerts of deploy/prometheus/rules.yml, in the data source chosen"
        " above.",
        {"value": (ALERTS, "none")},
        hidden=("Value", "job", "instance"),
        width=16,
    )
    table = coloured(table, "alertstate", ALERT_STATES)
    return [alerts("Alert list", "What Grafana's own alert list knows of them."), table]

"""The overview dashboard: the scores of every agent in every scenario, and firing alerts."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from generator import drift
from generator.panels import (
    BAD,
    BREACHED,
    FAIR,
    ZERO_IS_GOOD,
    Panels,
    States,
    alerts,
    board,
    graph,
    present_table,
    single_value,
    timeline,
    to_runs,
    to_scenario,
    with_links,
    with_rows,
    with_state_colours,
)
from generator.queries import (
    AGENT,
    ALERTS,
    EVALUATED,
    FIRING,
    METRIC,
    OF_AGENT,
    OF_SCENARIO,
    OF_SCORE,
    SCENARIO,
    SERIES,
    TENANT,
    WINDOW_MEAN,
    Query,
    datasource,
    rate,
    results_url,
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
LINKS = {
    "Show this scenario": to_scenario("agent", "scenario", "metric"),
    "Show its invocations": to_runs(),
}
"""Of the cells with the name of a scenario."""


def build() -> Dashboard:
    """The dashboard."""
    dashboard = board(
        "pathgauge-overview",
        "pathgauge / Overview",
        "Scores of every agent in every scenario with their thresholds, and alerts.",
    )
    for variable in (datasource(), AGENT, SCENARIO, METRIC, TENANT, results_url()):
        dashboard = dashboard.with_variable(variable)
    rows = {
        "At a glance": _single_values(),
        "Health": _health(),
        "Drift": [drift.worse()],
        "SLOs and silence": _objectives(),
        "Over time": _graphs(),
        "Alerts": _alerts(),
    }
    return with_rows(dashboard, rows)


def _single_values() -> Panels:
    invocations = f"sum(rate({INVOCATIONS}{{{OF_AGENT}}}[$__range]))"
    return [
        single_value(
            "Below threshold",
            "Agents and scenarios with at least one metric on the wrong side of its threshold, with"
            " enough samples.",
            f"count(max by (tenant, agent, scenario) (pathgauge_threshold_breached{{{OF_SCORE}}})"
            " == 1) or vector(0)",
            "none",
            ZERO_IS_GOOD,
        ),
        single_value(
            "Firing alerts",
            "Alerts of pathgauge that are firing now.",
            f"count({FIRING}) or vector(0)",
            "none",
            ZERO_IS_GOOD,
        ),
        single_value(
            "Scenarios with scores",
            "Agents and scenarios with recent scores. A window without a new score is removed after"
            " `windows.stale_after`.",
            "count(group by (tenant, agent, scenario)"
            f" (pathgauge_score_window_samples{{{OF_SCORE}}}))",
            "none",
        ),
        single_value(
            "Pass rate",
            "Share of passed verdicts among passed and failed ones, in the time range. Evaluations"
            " without a verdict do not count.",
            share(EVALUATED, OF_SCORE, PASSED, JUDGED, window="$__range"),
            "percentunit",
        ),
        single_value(
            "Invocations",
            "Evaluated invocations per second, in the time range.",
            invocations,
            "cps",
        ),
        single_value(
            "Without reference",
            "Share of invocations without a matching reference, in the time range. They are scored"
            " only by scorers that need no reference.",
            share(INVOCATIONS, OF_AGENT, 'match!="scenario"', "", window="$__range"),
            "percentunit",
        ),
    ]


def _health() -> Panels:
    table = present_table(
        "Health of every agent and scenario",
        "The mean of the recent scores in the scale of the metric, and its threshold. If lower is"
        " better, a mean above the threshold is a breach.",
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
    table = with_links(with_state_colours(table, "state", BREACHED), "scenario", LINKS)
    breaches = timeline(
        "Threshold breaches",
        "Red while the window mean was on the wrong side of its threshold. A gap is a window"
        " without recent scores.",
        Query(BREACHES, "{{agent}} / {{scenario}} / {{metric}} {{judge}} {{tenant}}"),
        BREACHED,
    )
    return [table, breaches]


def _objectives() -> Panels:
    passed = share(EVALUATED, OF_SCORE, PASSED, JUDGED, SERIES, window="$__range")
    failed = share(EVALUATED, OF_SCORE, 'outcome="fail"', JUDGED, SERIES, window="$__range")
    silence = (
        "time() - max by (tenant, scenario)"
        f" (pathgauge_last_evaluation_timestamp_seconds{{{OF_INTERVAL}}})"
    )
    return [
        present_table(
            "Objectives",
            "Criteria with an objective (SLO): the pass rate in the time range, and the burn rate:"
            " the share of failures divided by the share that is allowed.",
            {
                "objective": (OBJECTIVE, "percentunit"),
                "pass rate": (f"{passed} and on ({SERIES}) {OBJECTIVE}", "percentunit"),
                "burn rate": (f"{failed} / on ({SERIES}) (1 - {OBJECTIVE})", "none"),
            },
            width=12,
        ),
        present_table(
            "Silence of scenarios",
            "Time since the last score of each scenario by any agent, and the expected interval."
            " Empty: there was no score yet.",
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
            "Share of passed verdicts among passed and failed ones, over all selected metrics.",
            "percentunit",
            Query(
                share(EVALUATED, OF_SCORE, PASSED, JUDGED, "tenant, agent, scenario"),
                "{{agent}} / {{scenario}} {{tenant}}",
                exemplar=True,
            ),
            max_value=1,
        ),
        graph(
            "Invocations by agent",
            "Evaluated invocations per second, and those that ended in an error.",
            "cps",
            Query(rate(INVOCATIONS, OF_AGENT, "tenant, agent"), "{{agent}} {{tenant}}"),
            Query(
                rate(INVOCATIONS, f'{OF_AGENT}, status="error"', "tenant, agent"),
                "{{agent}} {{tenant}} errors",
            ),
        ),
    ]


def _alerts() -> Panels:
    table = present_table(
        "Pathgauge alerts in Prometheus",
        "Pending and firing alerts of deploy/prometheus/rules.yml, in the selected data source.",
        {"value": (ALERTS, "none")},
        hidden=("Value", "job", "instance"),
        width=16,
    )
    table = with_state_colours(table, "alertstate", ALERT_STATES)
    return [alerts("Alert list", "The same alerts in Grafana's own alert list."), table]

"""The dashboard about one or several scenarios: scores, verdicts, cost, versions, and traces."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard

from generator import drift
from generator.panels import Panels, as_limit, board, distribution, graph, with_rows
from generator.queries import (
    AGENT,
    CALLS,
    EVALUATED,
    FIRING,
    METRIC,
    OF_AGENT,
    OF_RELEASE,
    OF_SCENARIO,
    OF_SCORE,
    OF_VERSION,
    SCENARIO,
    SERIES,
    SOURCE,
    TENANT,
    VERSION,
    WINDOW_MEAN,
    Query,
    datasource,
    increase,
    mean,
    quantile,
    rate,
    results_url,
    share,
)

CALL_NAMES = "{{agent}} / {{scenario}} / {{metric}} {{tenant}}"
NAMES = f"{CALL_NAMES} {{{{judge}}}}"
VERSIONED = f"{NAMES} {{{{agent_version}}}}"
RELEASES = "tenant, agent, agent_version"
RELEASE = "{{agent}} {{tenant}} {{agent_version}}"
DURATION, TOKENS = "pathgauge_invocation_duration_seconds", "pathgauge_invocation_tokens"


def build() -> Dashboard:
    """The dashboard."""
    dashboard = board(
        "pathgauge-scenario",
        "pathgauge / Scenario",
        "Scores, verdicts and cost of an agent in a scenario, by version and over time.",
    )
    for variable in (datasource(), AGENT, SCENARIO, METRIC, VERSION, TENANT, results_url()):
        dashboard = dashboard.with_variable(variable)
    for annotation in (_versions(), _alerts()):
        dashboard = dashboard.annotation(annotation)
    rows = {
        "Scores": _scores(),
        "Drift": [drift.evidence(), drift.misses()],
        "Verdicts": _verdicts(),
        "Traces behind the scores": _traces(),
        "Cost of an invocation": _cost(),
        "Conversations": _conversations(),
    }
    return with_rows(dashboard, rows)


def _versions() -> AnnotationQuery:
    """Marks the time when a version of the agent was first seen."""
    expr = (
        f"max by ({RELEASES})"
        f" (pathgauge_agent_version_first_seen_timestamp_seconds{{{OF_RELEASE}}}) * 1000"
    )
    mark = (
        AnnotationQuery()
        .name("Versions")
        .datasource(SOURCE)
        .enable(True)
        .placement("")
        .icon_color("blue")
        .expr(expr)
    )
    return (
        mark.use_value_for_time(True)
        .title_format("New version")
        .text_format(RELEASE)
        .tag_keys("agent,agent_version")
    )


def _alerts() -> AnnotationQuery:
    """Marks the times in which an alert fired for the agent."""
    expr = f'{FIRING[:-1]}, agent=~"$agent|", scenario=~"$scenario|"}}'
    mark = (
        AnnotationQuery()
        .name("Alerts")
        .datasource(SOURCE)
        .enable(True)
        .placement("")
        .icon_color("red")
        .expr(expr)
        .step("60s")
    )
    return mark.title_format("{{alertname}}").text_format(CALL_NAMES).tag_keys("alertname,severity")


def _scores() -> Panels:
    recent = graph(
        "Recent scores and their threshold",
        "Mean over the window of recent scores in the scale of the metric. Dashed: the active"
        " threshold. pathgauge_metric_info gives the direction (higher or lower is better);"
        " pathgauge_threshold_breached takes it into account.",
        "none",
        Query(WINDOW_MEAN, NAMES),
        Query(f"max by ({SERIES}) (pathgauge_threshold{{{OF_SCORE}}})", f"threshold {NAMES}"),
    )
    versions = graph(
        "Score by version",
        "Mean of the normalized scores (0 to 1), by version of the agent. Only for metrics with a"
        " range, such as trajectories; not for seconds.",
        "percentunit",
        Query(mean("pathgauge_score", OF_VERSION, f"{SERIES}, agent_version"), VERSIONED),
        max_value=1,
    )
    return [as_limit(recent, "B"), versions]


def _verdicts() -> Panels:
    pass_rate = graph(
        "Pass rate by version",
        "Share of passed verdicts among passed and failed ones. Dashed: the objective, if any.",
        "percentunit",
        Query(
            share(
                EVALUATED,
                OF_VERSION,
                'outcome="pass"',
                'outcome=~"pass|fail"',
                f"{SERIES}, agent_version",
            ),
            VERSIONED,
        ),
        Query(f"max by ({SERIES}) (pathgauge_objective{{{OF_SCORE}}})", f"objective {NAMES}"),
        max_value=1,
    )
    outcomes = graph(
        "Verdicts by outcome",
        "Verdicts of each kind between two points. An evaluation without a score is not_evaluated,"
        " not a failure.",
        "short",
        Query(increase(EVALUATED, OF_VERSION, "outcome"), "{{outcome}}"),
        stacked=True,
        width=8,
    )
    failures = graph(
        "Failures by category",
        "Invocations that failed at least one criterion between two points, by the category of the"
        " failure, for all metrics and versions. Each invocation has one category. Points are"
        " examples. Click a point to open its trace.",
        "short",
        Query(
            increase("pathgauge_failures_total", OF_SCENARIO, "category"),
            "{{category}}",
            exemplar=True,
        ),
        stacked=True,
        width=8,
    )
    reasons = graph(
        "Why there was no score",
        "Evaluations without a score by reason, for the selected agents and metrics.",
        "short",
        Query(
            increase(
                "pathgauge_not_evaluated_total",
                f'{OF_AGENT}, metric=~"$metric"',
                "metric, reason",
            ),
            "{{metric}}: {{reason}}",
        ),
        stacked=True,
        width=8,
    )
    calls = graph(
        "Tool calls matched with the reference",
        "Precision: share of matched calls in the actual calls. Recall: share of matched calls in"
        " the expected calls. Every call has the same weight.",
        "percentunit",
        Query(_calls("actual"), f"precision {CALL_NAMES}"),
        Query(_calls("expected"), f"recall {CALL_NAMES}"),
        max_value=1,
    )
    return [as_limit(pass_rate, "B"), calls, outcomes, failures, reasons]


def _calls(denominator: str) -> str:
    return share(
        "pathgauge_trajectory_calls_total",
        OF_VERSION,
        'count="matched"',
        f'count="{denominator}"',
        CALLS,
    )


def _traces() -> Panels:
    return [
        distribution(
            "Scores, each with its trace",
            "Distribution of the normalized scores (0 to 1). Points are examples; if higher is"
            " better, the lowest are the worst. Click a point to open its trace.",
            "percentunit",
            Query(
                increase("pathgauge_score_bucket", OF_VERSION, "le"),
                "{{le}}",
                exemplar=True,
                format="heatmap",
            ),
        ),
        graph(
            "Failed verdicts, each with its trace",
            "Failed verdicts per second. Points are examples. Click a point to open its trace.",
            "cps",
            Query(rate(EVALUATED, f'{OF_VERSION}, outcome="fail"', SERIES), NAMES, exemplar=True),
        ),
    ]


def _cost() -> Panels:
    return [
        graph(
            "Duration",
            "Median and 95th percentile of the duration of an invocation, over all scenarios of"
            " the agent.",
            "s",
            Query(quantile(0.5, DURATION, OF_RELEASE, RELEASES), f"p50 {RELEASE}"),
            Query(quantile(0.95, DURATION, OF_RELEASE, RELEASES), f"p95 {RELEASE}"),
            width=8,
        ),
        graph(
            "Tokens",
            "Mean number of tokens of an invocation, if they were recorded, over all scenarios of"
            " the agent.",
            "short",
            Query(mean(TOKENS, OF_RELEASE, f"{RELEASES}, type"), f"{{{{type}}}} {RELEASE}"),
            width=8,
        ),
        graph(
            "Tool calls",
            "Mean number of tool calls of an invocation, over all scenarios of the agent.",
            "short",
            Query(mean("pathgauge_invocation_tool_calls", OF_RELEASE, RELEASES), RELEASE),
            width=8,
        ),
    ]


def _conversations() -> Panels:
    return [
        graph(
            "Scores of conversations",
            "Mean over the turns of the reference (0 to 1), for scenarios with several turns, at"
            " the end of a conversation.",
            "percentunit",
            Query(mean("pathgauge_case_score", OF_VERSION, f"{SERIES}, agent_version"), VERSIONED),
            max_value=1,
            width=8,
        ),
        graph(
            "Verdicts on conversations",
            "Finished conversations that passed and failed between two points.",
            "short",
            Query(increase("pathgauge_cases_total", OF_VERSION, "outcome"), "{{outcome}}"),
            stacked=True,
            width=8,
        ),
        graph(
            "Turns of conversations",
            "Turns that matched the reference, were missing, or were unexpected, over all agents.",
            "short",
            Query(
                "sum by (state) (increase(pathgauge_case_turns_total[$__rate_interval]))",
                "{{state}}",
            ),
            stacked=True,
            width=8,
        ),
    ]

"""One scenario of one agent, or several beside each other: scores, verdicts, cost, versions, and
the traces behind them.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard

from generator.panels import Panels, board, distribution, graph, limit, lines
from generator.queries import (
    AGENT,
    BASELINE,
    CALLS,
    EVALUATED,
    FIRING,
    METRIC,
    OF_RELEASE,
    OF_SCORE,
    OF_VERSION,
    P_VALUE,
    RECENT,
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
    share,
)

CALL_NAMES = "{{agent}} / {{scenario}} / {{metric}}"
NAMES = f"{CALL_NAMES} {{{{judge}}}}"
COMPARISON = f"{{{{baseline}}}}: {NAMES}"
VERSIONED = f"{NAMES} {{{{agent_version}}}}"
RELEASES = "tenant, agent, agent_version"
RELEASE = "{{agent}} {{agent_version}}"
DURATION, TOKENS = "pathgauge_invocation_duration_seconds", "pathgauge_invocation_tokens"


def build() -> Dashboard:
    """The dashboard."""
    page = board(
        "pathgauge-scenario",
        "pathgauge / Scenario",
        "Scores, verdicts and cost of an agent in a scenario, by version and over time.",
    )
    for variable in (datasource(), AGENT, SCENARIO, METRIC, VERSION, TENANT):
        page = page.with_variable(variable)
    for annotation in (_versions(), _alerts()):
        page = page.annotation(annotation)
    rows = {
        "Scores": _scores(),
        "Against earlier scores": _regressions(),
        "Verdicts": _verdicts(),
        "Traces behind the scores": _traces(),
        "Cost of an invocation": _cost(),
        "Conversations": _conversations(),
    }
    return lines(page, rows)


def _versions() -> AnnotationQuery:
    """A mark where a version of the agent was first seen."""
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
    """The times in which an alert fired for the agent."""
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
        "Mean over the window of recent scores in the scale of the metric. Dashed: the threshold in"
        " force. Which side of it is good, pathgauge_metric_info says; pathgauge_threshold_breached"
        " knows it.",
        "none",
        Query(WINDOW_MEAN, NAMES),
        Query(f"max by ({SERIES}) (pathgauge_threshold{{{OF_SCORE}}})", f"threshold {NAMES}"),
    )
    versions = graph(
        "Score by version",
        "Mean of the scores between 0 and 1, by version of the agent. For metrics with a range,"
        " such as trajectories; not for seconds.",
        "percentunit",
        Query(mean("pathgauge_score", OF_VERSION, f"{SERIES}, agent_version"), VERSIONED),
        most=1,
    )
    return [limit(recent, "B"), versions]


def _regressions() -> Panels:
    beside = graph(
        "Recent scores beside earlier ones",
        "In the scale of the metric. Dashed: the version before the newest one, or the pinned one,"
        " and the same day a week ago.",
        "none",
        Query(RECENT, f"recent, for {COMPARISON}"),
        Query(BASELINE, COMPARISON),
    )
    chance = graph(
        "Probability that it is chance",
        "Of a change for the worse at least as large when nothing has changed. Low values over a"
        " long time are a regression.",
        "percentunit",
        Query(P_VALUE, COMPARISON),
        most=1,
    )
    return [limit(beside, "B"), chance]


def _verdicts() -> Panels:
    pass_rate = graph(
        "Pass rate by version",
        "Verdicts that passed, of those that passed or failed. Dashed: the objective, where there"
        " is one.",
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
        most=1,
    )
    outcomes = graph(
        "Verdicts by outcome",
        "Verdicts of each kind from one point to the next. A score that could not be given is not"
        " evaluated, and no failure.",
        "short",
        Query(increase(EVALUATED, OF_VERSION, "outcome"), "{{outcome}}"),
        stacked=True,
    )
    reasons = graph(
        "Why there was no score",
        "Scores without a value by reason, for the chosen metrics and all agents.",
        "short",
        Query(
            increase("pathgauge_not_evaluated_total", 'metric=~"$metric"', "metric, reason"),
            "{{metric}}: {{reason}}",
        ),
        stacked=True,
    )
    calls = graph(
        "Tool calls matched with the reference",
        "Precision: matched calls of those made. Recall: matched calls of those expected. Every"
        " call weighs the same.",
        "percentunit",
        Query(_calls("actual"), f"precision {CALL_NAMES}"),
        Query(_calls("expected"), f"recall {CALL_NAMES}"),
        most=1,
    )
    return [limit(pass_rate, "B"), outcomes, reasons, calls]


def _calls(of: str) -> str:
    return share(
        "pathgauge_trajectory_calls_total", OF_VERSION, 'count="matched"', f'count="{of}"', CALLS
    )


def _traces() -> Panels:
    return [
        distribution(
            "Scores, each with its trace",
            "How scores are distributed between 0 and 1. A point is an example, the lowest are the"
            " worst. Click one to open its trace.",
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
            "Failed verdicts a second. A point is an example that failed. Click it to open the"
            " trace.",
            "cps",
            Query(rate(EVALUATED, f'{OF_VERSION}, outcome="fail"', SERIES), NAMES, exemplar=True),
        ),
    ]


def _cost() -> Panels:
    return [
        graph(
            "Duration",
            "Median and 95th percentile from start to end of an invocation, over all scenarios of"
            " the agent.",
            "s",
            Query(quantile(0.5, DURATION, OF_RELEASE, RELEASES), f"p50 {RELEASE}"),
            Query(quantile(0.95, DURATION, OF_RELEASE, RELEASES), f"p95 {RELEASE}"),
            width=8,
        ),
        graph(
            "Tokens",
            "Mean number of tokens of an invocation where they were recorded, over all scenarios of"
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
            "Mean over the turns of the reference, between 0 and 1, for scenarios with several"
            " turns, when a conversation has ended.",
            "percentunit",
            Query(mean("pathgauge_case_score", OF_VERSION, f"{SERIES}, agent_version"), VERSIONED),
            most=1,
            width=8,
        ),
        graph(
            "Verdicts on conversations",
            "How many finished conversations passed and failed from one point to the next.",
            "short",
            Query(increase("pathgauge_cases_total", OF_VERSION, "outcome"), "{{outcome}}"),
            stacked=True,
            width=8,
        ),
        graph(
            "Turns of conversations",
            "Turns that matched one of the reference, were missing, or came unexpected, over all"
            " agents.",
            "short",
            Query(
                "sum by (state) (increase(pathgauge_case_turns_total[$__rate_interval]))",
                "{{state}}",
            ),
            stacked=True,
            width=8,
        ),
    ]

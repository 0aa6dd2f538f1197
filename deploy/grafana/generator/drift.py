"""Panels about drift, for the overview and for one scenario: evidence, since when, and why."""

from __future__ import annotations

from grafana_foundation_sdk.builders import table, timeseries

from generator.panels import as_limit, graph, present_table, to_runs, to_scenario, with_links
from generator.queries import OF_SCORE, SERIES, Query

_STREAM = f"{SERIES}, against"
_NAME = "{{agent}} {{scenario}} {{metric}} {{judge}} against {{against}} {{tenant}}"
_EVIDENCE = f"max by ({_STREAM}) (pathgauge_drift_adjusted_evidence_days{{{OF_SCORE}}})"
_TIME = "dateTimeAsIso"
_LIMIT = "scalar(max(pathgauge_drift_limit))"


def worse() -> table.Panel:
    """What became worse."""
    found = f"{_EVIDENCE} > {_LIMIT}"
    panel = present_table(
        "Scores that became worse",
        "Evidence above the limit, adjusted for the number of series. N days mean: by chance alone,"
        " this much is reached once in N days. agent_version was first seen about since. Empty is"
        " good.",
        {
            "evidence": (found, "d"),
            "since": (_worse("since_timestamp_seconds", "agent_version", " * 1000"), _TIME),
            "mean before": (_worse("mean_before"), "none"),
            "mean since": (_worse("mean"), "none"),
            "baseline": (_worse("baseline"), "none"),
        },
    )
    links = {
        "Show this scenario": to_scenario("agent", "scenario", "metric"),
        "Show its invocations": to_runs(),
    }
    return with_links(panel, "scenario", links)


def evidence() -> timeseries.Panel:
    """The evidence over time."""
    panel = graph(
        "Evidence that scores became worse",
        "Adjusted for the number of series. N days mean: by chance alone, this much evidence is"
        " reached once in N days. Dashed: the limit, above which alerts fire.",
        "d",
        Query(_EVIDENCE, _NAME),
        Query("max(pathgauge_drift_limit)", "limit"),
    )
    return as_limit(panel, "B")


def misses() -> timeseries.Panel:
    """What explains the loss."""
    by = f"{_STREAM}, kind, tool, argument"
    return graph(
        "What explains the loss",
        "Share of the additional loss since the change, while an alert is open, by tool call that"
        " is missing or unexpected, or by argument that differs.",
        "percentunit",
        Query(
            f"topk(10, max by ({by}) (pathgauge_drift_misses{{{OF_SCORE}}}))",
            f"{{{{kind}}}} {{{{tool}}}} {{{{argument}}}}, {_NAME}",
        ),
        max_value=1,
    )


def _worse(name: str, label: str = "", scale: str = "") -> str:
    """A value of the streams that became worse."""
    by = f"{_STREAM}, {label}" if label else _STREAM
    value = f"max by ({by}) (pathgauge_drift_{name}{{{OF_SCORE}}}){scale}"
    return f"{value} and on ({_STREAM}) {_EVIDENCE} > {_LIMIT}"

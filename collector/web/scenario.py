"""One agent in one scenario: its scores over time, what fails, and what the reference expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pathgauge.collector.api import models, overview, reading
from pathgauge.collector.api.history import MAX_RESULTS, MAX_RUNS, history, labels_of
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.queries import ClusterQuery
from pathgauge.collector.core.evaluations.label_values import has_label
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.sinks.prometheus.labels import OTHER
from pathgauge.collector.web import drift, links
from pathgauge.collector.web.calls import CallView, expected_view
from pathgauge.collector.web.time_chart import HEIGHT, WIDTH, chart
from pathgauge.collector.web.visit import Page, Visit
from pathgauge.scorers.types import ReferenceTurn

MAX_NAME = 1_000
BEHAVIOURS = 5
CALLS = 50


@dataclass(frozen=True, slots=True)
class ExpectedTurn:
    """One turn of the reference."""

    user_input: str | None
    calls: Sequence[CallView] | None
    """`None`: no expectation about tools."""
    further_calls: int
    alternatives: int
    response: str | None


def scenario(visit: Visit) -> Page:
    """The page. `agent`, `scenario` and `tenant` name the series."""
    series = Series(
        visit.query.get("agent", ""),
        visit.query.get("scenario", ""),
        visit.shown_tenant or "",
    )
    if max(map(len, series)) > MAX_NAME:
        raise ProblemError(422, "The name of an agent or scenario is too long.")
    labels = labels_of(series)
    found = history(visit.sources, series)
    failures = _failures(visit, series)
    current = overview.series_of(visit.sources, series.tenant, lambda one: one == labels)
    reference = next(
        (one for one in visit.sources.references() if has_label(one.scenario_id, series.scenario)),
        None,
    )
    categories: Counter[str] = Counter()
    for cluster in failures.clusters:
        categories[cluster.category] += cluster.failures
    return Page(
        "scenario.html",
        {
            "series": series,
            "found": found,
            "max_results": MAX_RESULTS,
            "max_runs": MAX_RUNS,
            "drift": drift.of_series(visit, labels),
            "charts": [chart(line, found.versions) for line in found.lines],
            "chart_size": (WIDTH, HEIGHT),
            "scores": current[0].scores if current else [],
            "failures": failures,
            "categories": categories.most_common(),
            "reference": reference,
            "turns": [] if reference is None else list(map(_turn, reference.turns)),
            "behaviours": found.behaviours[:BEHAVIOURS],
            "more_behaviours": max(0, len(found.behaviours) - BEHAVIOURS),
            "results_link": _all_results(visit, series),
            "failed_link": _all_results(visit, series, verdict="failed"),
            "dashboard_link": visit.dashboard_url
            and links.dashboard(visit.dashboard_url, labels.agent, labels.scenario),
            "results_of": lambda **query: _results(visit, series, **query),
            "is_other": series.scenario == OTHER,
            "in_memory": visit.sources.reading is None,
        },
    )


def _failures(visit: Visit, series: Series) -> models.Clusters:
    query = ClusterQuery(agent=series.agent, scenario=series.scenario, tenant=series.tenant)
    return reading.clusters(visit.sources, visit.tenant, query)


def _results(visit: Visit, series: Series, **query: str | None) -> str:
    tenant = visit.listed(series.tenant)
    return links.results_of(series.agent, series.scenario, tenant, **query)


def _all_results(visit: Visit, series: Series, **query: str | None) -> str:
    """Without a scenario: the results of all scenarios of the agent."""
    if series.scenario:
        return _results(visit, series, **query)
    agent = series.agent or links.NO_NAME
    return links.results(agent=agent, tenant=visit.listed(series.tenant), **query)


def _turn(turn: ReferenceTurn) -> ExpectedTurn:
    calls = turn.tool_calls
    return ExpectedTurn(
        turn.user_input,
        None if calls is None else list(map(expected_view, calls[:CALLS])),
        max(0, len(calls or ()) - CALLS),
        len(turn.alternatives),
        turn.response,
    )

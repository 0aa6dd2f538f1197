"""The first page: agents by scenarios, the worst first, and what failed lately."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from pathgauge.collector.api import models, overview as state, reading
from pathgauge.collector.api.queries import ClusterQuery, DriftQuery
from pathgauge.collector.api.traffic import traffic
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.traffic.drift import IDLE
from pathgauge.collector.sinks.prometheus.drift.gauges import SILENT_S
from pathgauge.collector.web import drift, links
from pathgauge.collector.web.sparklines import HEIGHT, WIDTH, Sparkline, sparkline
from pathgauge.collector.web.visit import Page, Visit

SERIES_PER_PAGE = 100
CLUSTERS = 6
CLUSTERS_SINCE = "24h"
UNMATCHED = 20
DIVERGING = 20
CHANGES = 3
"""Of each agent with other tool calls."""


@dataclass(frozen=True, slots=True)
class SeriesView:
    """One agent in one scenario."""

    series: models.Series
    link: str
    scores: Sequence[tuple[models.Score, Sparkline]]
    state: models.State
    is_worse: bool
    """Whether an alarm is open that scores became worse."""


def overview(visit: Visit) -> Page:
    """The page. `q` filters by name, `from` skips series."""
    wanted = visit.query.get("q", "").casefold()
    summary = state.summary(visit.sources, visit.tenant, lambda one: wanted in _names(one))
    found = summary.series
    start = _start(visit.query.get("from", ""), len(found))
    shown = found[start : start + SERIES_PER_PAGE]
    failures = _failures(visit)
    worse = drift.worse(drift.every(visit))
    places = {drift.place_of(one.view.stream) for one in worse}
    watched = [
        (one, visit.now - one.last.timestamp())
        for one in traffic(visit.sources, visit.tenant, DriftQuery())
    ]
    return Page(
        "overview.html",
        {
            "series": [_view(one, places) for one in shown],
            "worse": worse[: drift.SCENARIOS],
            "more_worse": max(0, len(worse) - drift.SCENARIOS),
            "further_series": summary.further_series,
            "total": len(found),
            "start": start,
            "wanted": visit.query.get("q", ""),
            "previous": _page_link(visit, start - SERIES_PER_PAGE, start > 0),
            "next": _page_link(
                visit, start + SERIES_PER_PAGE, start + SERIES_PER_PAGE < len(found)
            ),
            "here": links.with_query("/", visit.query),
            "unmatched": summary.unmatched.scenarios[:UNMATCHED],
            "more_unmatched": max(0, len(summary.unmatched.scenarios) - UNMATCHED),
            "further_unmatched": summary.unmatched.further_invocations,
            "telemetry": summary.telemetry,
            "clusters": failures.clusters[:CLUSTERS],
            "failures": failures.failures,
            "complete": failures.complete,
            "failures_link": links.results(verdict="failed", since=CLUSTERS_SINCE),
            "diverging": [one for one, age in watched if one.alarm and age <= SILENT_S][:DIVERGING],
            "max_changes": CHANGES,
            "low_traffic": [
                one for one, age in watched if one.status == "low_traffic" and age <= IDLE
            ][:DIVERGING],
            "in_memory": visit.sources.reading is None,
            "sparkline_size": (WIDTH, HEIGHT),
        },
    )


def _failures(visit: Visit) -> models.Clusters:
    query = ClusterQuery.model_validate({"since": CLUSTERS_SINCE})
    return reading.clusters(visit.sources, visit.tenant, query)


def _view(series: models.Series, worse: Container[drift.Place]) -> SeriesView:
    states: set[models.State] = {score.state for score in series.scores}
    worst: Sequence[models.State] = ("breached", "few_samples", "ok", "no_threshold")
    return SeriesView(
        series,
        links.scenario(series.agent, series.scenario_id, series.tenant),
        [(score, sparkline(score, series.versions)) for score in series.scores],
        next((state for state in worst if state in states), "no_threshold"),
        (series.tenant, series.agent or "", series.scenario_id) in worse,
    )


def _names(series: Series) -> str:
    return f"{series.agent} {series.scenario}".casefold()


def _start(text: str, count: int) -> int:
    number = int(text) if text.isdecimal() and len(text) < 7 else 0
    return number if number < count else 0


def _page_link(visit: Visit, start: int, exists: bool) -> str | None:
    if not exists:
        return None
    return links.with_query("/", {**visit.query, "from": max(0, start) or None})

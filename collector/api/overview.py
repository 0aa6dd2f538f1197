"""Answers queries from the state of the running collector: recent scores, scenario ids without a
reference, and the active references.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from pathgauge.collector.api import models
from pathgauge.collector.api.models import time_of
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.store.queries.runs import Runs, last_runs

MAX_SERIES = 500
"""Agents and scenarios in a summary."""
MAX_POINTS = 40
"""Points of a line of recent scores."""
_MAX_REFERENCES = 5_000


def unmatched(sources: Sources, tenant: str | None) -> models.Unmatched:
    """Scenario ids without a reference, the most frequent first."""
    found, further = sources.unknown()
    listed = sorted(
        (one for one in found if tenant in (None, one.tenant)), key=lambda one: -one.invocations
    )
    return models.Unmatched(
        scenarios=[
            models.UnmatchedScenario(
                tenant=one.tenant,
                scenario_id=one.scenario,
                invocations=one.invocations,
                closest=list(one.closest),
            )
            for one in listed
        ],
        # The count is of all tenants, so one of them must not see it.
        further_invocations=further if tenant is None else 0,
    )


def summary(
    sources: Sources, tenant: str | None, is_wanted: Callable[[Series], bool] = lambda _: True
) -> models.Summary:
    """Agents and scenarios with recent scores, and the state of the telemetry."""
    series = series_of(sources, tenant, is_wanted)
    return models.Summary(
        series=series[:MAX_SERIES],
        further_series=max(0, len(series) - MAX_SERIES),
        unmatched=unmatched(sources, tenant),
        # The counts are of all tenants, so one of them must not see them.
        telemetry=sources.telemetry() if tenant is None else None,
    )


def series_of(
    sources: Sources, tenant: str | None, is_wanted: Callable[[Series], bool]
) -> list[models.Series]:
    """Agents and scenarios with recent scores, the worst first; all of them."""
    return sorted(_series(sources, tenant, is_wanted), key=_badness)


def references(sources: Sources, tenant: str | None) -> models.References:
    """The active references, and how many of the last invocations had one."""
    active = list(sources.references())[:_MAX_REFERENCES]
    runs = Runs({}, 0, 0, complete=False)
    if sources.reading is not None:
        with sources.reading() as connection:
            runs = last_runs(connection, tenant, (one.scenario_id for one in active))
    listed = [
        models.ReferenceState(
            scenario_id=reference.scenario_id,
            version=reference.version,
            source=reference.source,
            turns=len(reference.turns),
            required=reference.required,
            last_run=time_of(at) if (at := runs.last.get(reference.scenario_id)) else None,
        )
        for reference in active
    ]
    listed.sort(key=lambda one: (one.last_run is not None, one.scenario_id))
    return models.References(
        references=listed,
        matched=runs.matched,
        of=runs.invocations,
        complete=runs.complete,
    )


def _series(
    sources: Sources, tenant: str | None, is_wanted: Callable[[Series], bool]
) -> Iterator[models.Series]:
    by_series: dict[Series, list[CurrentScore]] = defaultdict(list)
    for score in sources.scores():
        window = score.window
        if tenant in (None, window.tenant):
            by_series[Series(window.agent, window.scenario, window.tenant)].append(score)
    for (agent, scenario, of), scores in by_series.items():
        if not is_wanted(Series(agent, scenario, of)):
            continue
        yield models.Series(
            tenant=of,
            agent=agent or None,
            scenario_id=scenario or None,
            last=time_of(max(score.window.last for score in scores)),
            scores=[_score(score) for score in scores if score.window.version is None],
            versions=list(_versions(scores)),
        )


def _versions(scores: Iterable[CurrentScore]) -> Iterator[models.VersionScore]:
    for window in (score.window for score in scores):
        if window.version is not None:
            yield models.VersionScore(
                version=window.version,
                criterion=window.metric,
                mean=window.mean,
                samples=window.samples,
                last=time_of(window.last),
            )


def _score(score: CurrentScore) -> models.Score:
    window, criterion = score.window, score.criterion
    return models.Score(
        criterion=window.metric,
        mean=window.mean,
        samples=window.samples,
        threshold=None if criterion is None else criterion.threshold,
        higher_is_better=criterion is None or criterion.scorer.higher_is_better,
        state=_state(score),
        judge="" if criterion is None else criterion.judge,
        recent=_points(window.values),
    )


def _state(score: CurrentScore) -> models.State:
    if score.criterion is None or score.criterion.threshold is None:
        return "no_threshold"
    if score.breached:
        return "breached"
    return "ok" if score.window.samples >= score.min_samples else "few_samples"


def _points(values: Sequence[float]) -> list[float]:
    """At most `MAX_POINTS` means of neighbouring values."""
    width = -(-len(values) // MAX_POINTS) or 1
    chunks = [values[start : start + width] for start in range(0, len(values), width)]
    return [sum(chunk) / len(chunk) for chunk in chunks]


def _badness(series: models.Series) -> tuple[bool, float, str, str]:
    """The order of series, the worst first: by the mean that misses its threshold the most."""
    margins = [
        (score.mean - score.threshold) * (1 if score.higher_is_better else -1)
        for score in series.scores
        if score.threshold is not None
    ]
    breached = any(score.state == "breached" for score in series.scores)
    names = series.agent or "", series.scenario_id or ""
    return not breached, min(margins, default=float("inf")), *names

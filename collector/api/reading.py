"""Answers queries from the store and from the running collector.

The functions are plain: they take a `Sources`, the tenant whose data may be read (`None`: all), and
the checked parameters. The API, the pages and the commands share them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pathgauge.collector.api import models
from pathgauge.collector.api.models import time_of
from pathgauge.collector.api.queries import ClusterQuery, ResultQuery
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evidence.comparison import comparisons
from pathgauge.collector.core.evidence.evidence import Evidence, to_json
from pathgauge.collector.core.otlp.encode_json import resource_logs, resource_spans
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.store import evidence as evidence_rows
from pathgauge.collector.store.queries import (
    clusters as cluster_rows,
    results as result_rows,
    traces as trace_records,
)
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.results import StoredResult

MAX_SERIES = 500
"""Agents and scenarios in a summary."""
MAX_POINTS = 40
"""Points of a line of recent scores."""
_MAX_REFERENCES = 5_000


def results(sources: Sources, tenant: str | None, query: ResultQuery) -> models.Results:
    """The newest results that match."""
    if sources.folder is None:
        return models.Results(results=[], next=None)
    before = None if query.cursor is None else int(query.cursor)
    with reading(sources.folder) as connection:
        page = result_rows.find(connection, query.filter(tenant), query.limit, before)
    return models.Results(
        results=[result_of(one) for one in page.results],
        next=None if page.next is None else str(page.next),
    )


def explained(
    sources: Sources, tenant: str | None, trace_id: str, span_id: str | None = None
) -> models.ExplainedTrace:
    """The results of a trace, or of one of its invocations, with their evidence."""
    found = stored(sources, tenant, trace_id, span_id)
    return models.ExplainedTrace(results=[explain(*one) for one in found])


def stored(
    sources: Sources, tenant: str | None, trace_id: str, span_id: str | None = None
) -> list[tuple[StoredResult, Evidence | None]]:
    """The same, as it is stored."""
    if sources.folder is None:
        return []
    with reading(sources.folder) as connection:
        return [
            (one, evidence_rows.find(connection, one.key))
            for one in result_rows.of_trace(connection, trace_id, span_id, tenant)
        ]


def trace(sources: Sources, tenant: str | None, trace_id: str) -> models.Trace | None:
    """The spans and log records of a trace; `None` if nothing of it is kept."""
    if sources.folder is None:
        return None
    with reading(sources.folder) as connection:
        found = trace_records.trace(connection, trace_id, tenant)
    if found is None:
        return None
    return models.Trace(
        source=found.source,
        complete=found.complete,
        resourceSpans=resource_spans(found.spans),
        resourceLogs=resource_logs(found.logs),
    )


def clusters(sources: Sources, tenant: str | None, query: ClusterQuery) -> models.Clusters:
    """The newest failures, grouped."""
    if sources.folder is None:
        return models.Clusters(clusters=[], failures=0, complete=True)
    with reading(sources.folder) as connection:
        found = cluster_rows.clusters(connection, query.filter(tenant))
    return models.Clusters(
        clusters=[
            models.Cluster(
                tenant=one.tenant,
                agent=one.agent,
                scenario_id=one.scenario_id,
                category=one.category,
                signature=one.signature,
                failures=one.failures,
                first=time_of(one.first_at),
                last=time_of(one.last_at),
                trace_id=one.trace_id,
                span_id=one.span_id,
            )
            for one in found.clusters
        ],
        failures=found.failures,
        complete=found.complete,
    )


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


def summary(sources: Sources, tenant: str | None) -> models.Summary:
    """Agents and scenarios with recent scores, and the state of the telemetry."""
    series = sorted(_series(sources, tenant), key=_badness)
    return models.Summary(
        series=series[:MAX_SERIES],
        further_series=max(0, len(series) - MAX_SERIES),
        unmatched=unmatched(sources, tenant),
        telemetry=sources.telemetry(),
    )


def references(sources: Sources, tenant: str | None) -> models.References:
    """The active references, and how many of the last invocations had one."""
    active = list(sources.references())[:_MAX_REFERENCES]
    runs = result_rows.Runs({}, 0, 0)
    if sources.folder is not None:
        with reading(sources.folder) as connection:
            runs = result_rows.last_runs(connection, tenant)
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
    return models.References(references=listed, matched=runs.matched, of=runs.invocations)


def explain(stored: StoredResult, evidence: Evidence | None) -> models.Explained:
    """A result with its evidence."""
    result = result_of(stored, evidence)
    if evidence is None:
        return models.Explained(result=result, evidence=None, comparisons=[])
    return models.Explained(
        result=result,
        evidence=to_json(evidence),
        comparisons=[
            models.Comparison(
                criteria=list(names),
                calls=[
                    models.ComparedCall(mark=row.mark, expected=row.expected, actual=row.actual)
                    for row in rows
                ],
            )
            for names, rows in comparisons(evidence)
        ],
    )


def result_of(stored: StoredResult, evidence: Evidence | None = None) -> models.Result:
    """The answer for a stored result, with the explanations of its evidence."""
    said = {} if evidence is None else {one.name: one.explanation for one in evidence.criteria}
    return models.Result(
        trace_id=stored.trace_id,
        span_id=stored.span_id,
        tenant=stored.tenant,
        time=time_of(stored.at),
        agent=stored.agent,
        agent_version=stored.agent_version,
        scenario_id=stored.scenario_id,
        verdict=stored.verdict,
        category=stored.category,
        signature=stored.signature,
        reference_version=stored.reference_version,
        unmatched=stored.unmatched,
        flags=list(stored.flags),
        duration_s=stored.duration_s,
        revision=stored.revision,
        criteria=[
            models.Criterion(
                name=one.name,
                scorer=one.scorer,
                verdict=one.verdict,
                value=one.value,
                threshold=one.threshold,
                reason=one.reason,
                judge=one.judge,
                explanation=said.get(one.name, ""),
            )
            for one in stored.criteria
        ],
    )


def _series(sources: Sources, tenant: str | None) -> Iterator[models.Series]:
    by_series: dict[tuple[str, str, str], list[CurrentScore]] = defaultdict(list)
    for score in sources.scores():
        window = score.window
        if tenant in (None, window.tenant):
            by_series[window.tenant, window.agent, window.scenario].append(score)
    for (of, agent, scenario), scores in by_series.items():
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

"""Compares the scores in shadow with the active ones of the same invocations."""

from __future__ import annotations

from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.queries import ShadowQuery
from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.api.releases import ComparedCriteria, metric_verdict
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evaluations.shadow_result import Shadowed
from pathgauge.collector.core.verdicts.comparison import Stratum, Terms
from pathgauge.collector.core.verdicts.release import decide
from pathgauge.collector.core.verdicts.scale import scale_of
from pathgauge.collector.store.queries.shadowed import ShadowedResults
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.store.queries.two_versions import READ_S

SHADOW, ACTIVE = "shadow", "active"
"""What an answer has instead of versions."""


def verdict(
    sources: Sources, tenant: str | None, query: ShadowQuery, read_s: float = READ_S
) -> ReleaseVerdict:
    """Compare what the newest criteria and references in shadow have scored. Raises `ProblemError`
    as `releases.verdict` does.
    """
    if sources.reading is None:
        detail = "store: found memory, expected a store on disk: without one no results are kept"
        raise ProblemError(409, detail)
    criteria = ComparedCriteria(sources.evaluator(), query.metric, of_sessions=False)
    newest, compared = _newest(sources, tenant, query), 0
    with sources.reading() as connection:
        found = ShadowedResults(connection, query.filter(tenant), read_s)
        for result in found.newest_first():
            if result.shadow is not None and result.shadow.setup == newest:
                compared += 1
                _add(criteria, result, result.shadow)
        complete = found.complete
    for scores in criteria.scores.values():
        scores.reverse()
    release = decide(criteria.scores, Terms(query.confidence, query.margin, query.min_effect))
    return ReleaseVerdict(
        agent=query.agent,
        version=SHADOW,
        against=ACTIVE,
        verdict=release.outcome,
        reason=None if compared else "no_results_of_version",
        confidence=query.confidence,
        margin=query.margin,
        min_effect=query.min_effect,
        version_results=compared,
        against_results=compared,
        complete=complete,
        metrics=list(map(metric_verdict, release.comparisons)),
    )


def _newest(sources: Sources, tenant: str | None, query: ShadowQuery) -> str | None:
    """The setup that has scored last: results of another one say nothing about it."""
    assert sources.reading is not None
    with sources.reading() as connection:
        found = ShadowedResults(connection, query.filter(tenant)).newest_first()
        newest = max(found, key=lambda one: one.row, default=None)
    return None if newest is None or newest.shadow is None else newest.shadow.setup


def _add(criteria: ComparedCriteria, result: StoredResult, shadow: Shadowed) -> None:
    active = {one.name: one for one in result.criteria}
    known = criteria.of(result.scenario_id)
    for one in shadow.results:
        if one.name not in criteria.scores or one.name not in active or one.name not in known:
            continue
        before = active[one.name]
        references = result.reference_version or "", shadow.reference or ""
        measured_by = (before.scorer, one.scorer, *references)
        scale = scale_of(known[one.name])
        stratum = Stratum(result.tenant, result.scenario_id or "", scale, measured_by)
        criteria.scores[one.name].add_pair(stratum, one.value, before.value)

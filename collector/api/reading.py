"""Answers queries from the store.

The functions are plain: they take a `Sources`, the tenant whose data may be read (`None`: all), and
the checked parameters. The API, the pages and the commands share them.
"""

from __future__ import annotations

from pathgauge.collector.api import models
from pathgauge.collector.api.models import time_of
from pathgauge.collector.api.queries import ClusterQuery, ResultQuery
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.api.wanted_values import check_values
from pathgauge.collector.core.evidence.comparison import comparisons
from pathgauge.collector.core.evidence.evidence import Evidence, to_json
from pathgauge.collector.core.feedback.opinion import NOBODY, Opinion
from pathgauge.collector.core.otlp.encode_json import resource_logs, resource_spans
from pathgauge.collector.store.evidence import table as evidence_rows
from pathgauge.collector.store.queries import (
    clusters as cluster_rows,
    results as result_rows,
    traces as trace_records,
)
from pathgauge.collector.store.queries.feedback import opinions
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.store.sql import Connection


def results(sources: Sources, tenant: str | None, query: ResultQuery) -> models.Results:
    """The newest results that match."""
    wanted = query.filter(tenant)
    if sources.reading is None:
        check_values(None, wanted)
        return models.Results(results=[], next=None)
    before = None if query.cursor is None else int(query.cursor)
    with sources.reading() as connection:
        check_values(connection, wanted)
        page = result_rows.find(connection, wanted, query.limit, before)
    return models.Results(
        results=[result_of(one) for one in page.results],
        next=None if page.next is None else str(page.next),
        searched_to=None if page.searched_to is None else time_of(page.searched_to),
    )


def explained(
    sources: Sources, tenant: str | None, trace_id: str, span_id: str | None = None
) -> models.ExplainedTrace:
    """The results of a trace, or of one of its invocations, with their evidence."""
    if sources.reading is None:
        return models.ExplainedTrace(results=[])
    with sources.reading() as connection:
        found = _stored(connection, tenant, trace_id, span_id)
        people = opinions(connection, (one for one, _ in found), sources.verdict_rules)
    return models.ExplainedTrace(
        results=[explain(*one, people.get(one[0].key, NOBODY)) for one in found]
    )


def stored(
    sources: Sources, tenant: str | None, trace_id: str, span_id: str | None = None
) -> list[tuple[StoredResult, Evidence | None]]:
    """The same, as it is stored."""
    if sources.reading is None:
        return []
    with sources.reading() as connection:
        return _stored(connection, tenant, trace_id, span_id)


def _stored(
    connection: Connection, tenant: str | None, trace_id: str, span_id: str | None
) -> list[tuple[StoredResult, Evidence | None]]:
    wanted = trace_id.lower(), None if span_id is None else span_id.lower()
    return [
        (one, evidence_rows.find(connection, one.key))
        for one in result_rows.of_trace(connection, *wanted, tenant)
    ]


def trace(sources: Sources, tenant: str | None, trace_id: str) -> models.Trace | None:
    """The spans and log records of a trace; `None` if nothing of it is kept."""
    if sources.reading is None:
        return None
    with sources.reading() as connection:
        found = trace_records.trace(connection, trace_id.lower(), tenant)
    if found is None:
        return None
    return models.Trace(
        source=found.source,
        complete=found.complete,
        resourceSpans=resource_spans(found.spans),
        resourceLogs=resource_logs(found.logs),
    )


def clusters(
    sources: Sources,
    tenant: str | None,
    query: ClusterQuery,
    seconds: float | None = None,
) -> models.Clusters:
    """The newest failures, grouped. `seconds` is for those who wait for nobody."""
    wanted = query.filter(tenant)
    if sources.reading is None:
        check_values(None, wanted)
        return models.Clusters(clusters=[], failures=0, complete=True)
    with sources.reading() as connection:
        check_values(connection, wanted)
        found = cluster_rows.clusters(connection, wanted, seconds)
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


def explain(
    stored: StoredResult, evidence: Evidence | None, said: Opinion = NOBODY
) -> models.Explained:
    """A result with its evidence."""
    result = result_of(stored, evidence)
    people = models.People(good=said.good, bad=said.bad)
    if evidence is None:
        return models.Explained(result=result, evidence=None, comparisons=[], people=people)
    return models.Explained(
        result=result,
        people=people,
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
        session=_session(stored),
    )


def _session(stored: StoredResult) -> models.Session | None:
    if stored.session is None:
        return None
    return models.Session(
        conversation_id=stored.session.conversation_id,
        ended_by=stored.session.ended_by,
        turns=[
            models.SessionTurn(trace_id=trace_id, span_id=span_id)
            for trace_id, span_id in stored.session.turns
        ],
    )

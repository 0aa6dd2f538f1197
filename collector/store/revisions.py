"""Which revisions of evaluations are the newest.

When the scenario of a turn changes, another scorer evaluates it from then on, so revisions of one
invocation may be written in any order, in one transaction or in several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.pipeline_events import Judged, PublishedEvent, Withdrawn
from pathgauge.collector.store.sql import Connection, with_keys


def newest_revisions(
    connection: Connection, outcomes: Sequence[PublishedEvent]
) -> Mapping[EvaluationKey, int]:
    """The newest revision of each evaluation that is in the database or in `outcomes`; 0 for those
    that are not contained. A withdrawn evaluation begins anew.
    """
    keys = {one.key: None for one in map(_evaluation, outcomes) if one is not None}
    newest = dict(_stored(connection, list(keys)))
    withdrawn: dict[EvaluationKey, int] = {}
    for event in outcomes:
        if isinstance(event, Evaluation):
            newest[event.key] = max(event.revision, newest.get(event.key, 0))
        elif isinstance(event, Withdrawn):
            withdrawn[event.key] = newest.pop(event.key, 0)
    return withdrawn | newest


def outdated(outcomes: Iterable[PublishedEvent], newest: Mapping[EvaluationKey, int]) -> Set[int]:
    """The indexes of evaluations, and of results of judges, that a newer revision replaces."""
    return {
        index
        for index, one in enumerate(map(_evaluation, outcomes))
        if one is not None and one.revision < newest.get(one.key, 0)
    }


def _evaluation(event: PublishedEvent) -> Evaluation | None:
    if isinstance(event, Judged):
        return event.evaluation
    return event if isinstance(event, Evaluation) else None


def _stored(
    connection: Connection, keys: Sequence[EvaluationKey]
) -> Iterator[tuple[EvaluationKey, int]]:
    found = with_keys(
        connection,
        "tenant, trace_id, span_id",
        keys,
        "SELECT r.tenant, r.trace_id, r.span_id, r.revision FROM keys"
        " CROSS JOIN results AS r WHERE r.trace_id = keys.trace_id"
        " AND r.span_id = keys.span_id AND r.tenant = keys.tenant"
        " AND r.revision > 0 AND r.withdrawn = 0 ORDER BY r.revision",
    )
    for tenant, trace_id, span_id, revision in found:
        yield (tenant, trace_id, span_id), revision

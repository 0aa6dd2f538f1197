"""Answers two questions of somebody who repairs an agent: which version is worse, and what should
it have done?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pathgauge.collector.api import models
from pathgauge.collector.api.models import time_of
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.queries import ReferenceQuery, VersionQuery
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evaluations.label_values import has_label
from pathgauge.collector.core.evidence.evidence import Evidence
from pathgauge.collector.core.references.export_native import scenario
from pathgauge.collector.store.evidence import table as evidence_rows
from pathgauge.collector.store.queries import results as result_rows, versions as version_rows
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.scorers.matching.matchers import read
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

_RESULTS_WITH_EVIDENCE = 20
"""In how many of the newest results of a scenario its reference is looked for."""


def versions(sources: Sources, tenant: str | None, query: VersionQuery) -> models.Versions:
    """The newest results of an agent, by its version."""
    if sources.reading is None:
        return models.Versions(versions=[], complete=True)
    with sources.reading() as connection:
        found = version_rows.by_version(connection, query.filter(tenant))
    return models.Versions(
        versions=[
            models.VersionRuns(
                version=one.version,
                invocations=one.verdicts.total(),
                verdicts=dict(one.verdicts),
                first=time_of(one.first_at),
                last=time_of(one.last_at),
                criteria=[
                    models.CriterionRuns(
                        criterion=name,
                        mean=runs.total / runs.samples if runs.samples else None,
                        samples=runs.samples,
                        failed=runs.failed,
                        threshold=runs.threshold,
                    )
                    for name, runs in one.criteria.items()
                ],
            )
            for one in found.versions
        ],
        complete=found.complete,
    )


def reference(
    sources: Sources, tenant: str | None, query: ReferenceQuery
) -> models.ReferenceDocument:
    """The active reference of a scenario, else the one that a stored run was evaluated against.
    Raises `ProblemError` if there is neither.
    """
    for one in sources.references():
        if has_label(one.scenario_id, query.scenario):
            return _document(one, active=True)
    for evidence in _evidence(sources, Filter(tenant=tenant, scenario=query.scenario)):
        if evidence.turn is not None:
            turns = (_with_matchers(evidence.turn),)
            version = evidence.reference_version or ""
            last = Reference(query.scenario, turns, version, evidence.reference_source)
            return _document(last, active=False, turn_index=evidence.turn_index)
    raise ProblemError(404, "no reference of this scenario is active, or kept with a result")


def _evidence(sources: Sources, wanted: Filter) -> Iterator[Evidence]:
    """The evidence of the newest results."""
    if sources.reading is None:
        return
    with sources.reading() as connection:
        page = result_rows.find(connection, wanted, _RESULTS_WITH_EVIDENCE)
        for one in page.results:
            if (found := evidence_rows.find(connection, one.key)) is not None:
                yield found


def _document(
    found: Reference, *, active: bool, turn_index: int | None = None
) -> models.ReferenceDocument:
    try:
        document = scenario(found)
    except ValueError as error:
        raise ProblemError(404, f"the reference has no written form: {error}") from None
    return models.ReferenceDocument(
        scenario_id=found.scenario_id,
        version=found.version,
        source=found.source,
        active=active,
        turn_index=turn_index,
        document=document,
    )


def _with_matchers(turn: ReferenceTurn) -> ReferenceTurn:
    """A turn of evidence, whose matchers are in the form of reference files."""
    return replace(
        turn,
        tool_calls=None if turn.tool_calls is None else _calls(turn.tool_calls),
        alternatives=tuple(map(_calls, turn.alternatives)),
        forbidden=_calls(turn.forbidden),
        agents={name: _with_matchers(part) for name, part in turn.agents.items()},
    )


def _calls(calls: Iterable[ExpectedCall]) -> tuple[ExpectedCall, ...]:
    return tuple(
        call if call.arguments is None else replace(call, arguments=_read(call.arguments))
        for call in calls
    )


def _read(arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    try:
        found: Mapping[str, Json] = read(arguments)
    except ValueError:  # a matcher that lost its end, because the evidence was too long
        return arguments
    return found

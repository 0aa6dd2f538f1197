"""A reference that is proposed from kept runs of a scenario: a page with evidence, and a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.responses import Response

from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.core.curation.grouping import Observed, grouped
from pathgauge.collector.core.curation.kept import observed_in
from pathgauge.collector.core.curation.proposal import MIN_RUNS, Proposal, propose
from pathgauge.collector.core.curation.written import document, said
from pathgauge.collector.core.evaluations.label_values import has_label
from pathgauge.collector.core.feedback.opinion import NOBODY
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.store.evidence import table as evidence_rows
from pathgauge.collector.store.queries.feedback import opinions
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.results import find
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.store.schema import name_of
from pathgauge.collector.store.sql import Connection
from pathgauge.collector.web import answers, links
from pathgauge.collector.web.visit import Page, Visit
from pathgauge.scorers.matching.wording import counted

MAX_RUNS = 200
"""Runs that are learned from: the newest. `pathgauge curate` reads more, beside the collector."""
_MAX_CALLS = 5_000
"""Calls of all these runs, so that a query takes no longer than about a second."""
_MAX_FACTS = 200


class _Found(NamedTuple):
    scenario_id: str
    """As it was asked for; it may be cut."""
    tenant: str
    runs: int
    """The kept runs that may be learned from."""
    proposal: Proposal | None
    left_out: Mapping[str, int] = {}
    """How many others are kept, by why nothing is learned from them."""


def proposal(visit: Visit) -> Page:
    """The page."""
    found = _found(visit)
    values: dict[str, Any] = {
        "proposal": found.proposal,
        "scenario_id": found.scenario_id,
        "runs": found.runs,
        "left_out": found.left_out,
        "min_runs": MIN_RUNS,
        "in_memory": visit.sources.reading is None,
    }
    if found.proposal is None:
        return Page("proposal.html", values)
    facts = found.proposal.facts[:_MAX_FACTS]
    return Page(
        "proposal.html",
        {
            **values,
            "facts": facts,
            "further_facts": len(found.proposal.facts) - len(facts),
            "said": list(said(found.proposal.people)),
            "text": document(found.proposal),
            "file_link": links.proposal_file(found.scenario_id, found.tenant),
            "examples_tenant": visit.listed(found.tenant),
        },
    )


def proposal_file(visit: Visit) -> Response:
    """The YAML."""
    if visit.path["file"] != links.PROPOSAL_FILE:
        raise ProblemError(404, f"found no such file, expected {links.PROPOSAL_FILE}")
    found = _found(visit)
    if found.proposal is None:
        raise ProblemError(
            404, f"found {counted(found.runs, 'kept run')}, expected {MIN_RUNS} or more."
        )
    return Response(
        document(found.proposal).encode("utf-8", "replace"),
        headers={
            **answers.HEADERS,
            "content-disposition": 'attachment; filename="proposed-reference.yaml"',
        },
        media_type="application/yaml",
    )


def _found(visit: Visit) -> _Found:
    scenario_id = visit.query.get("scenario", "")
    tenant = visit.shown_tenant or ""
    reading = visit.sources.reading
    if reading is None or not scenario_id:
        return _Found(scenario_id, tenant, 0, None)
    with reading() as connection:
        runs = _newest(connection, visit.shown_tenant, scenario_id)
        kept = list(_kept(connection, runs, visit.sources.verdict_rules))
    tenant = runs[0].tenant if runs else tenant
    # Scenarios whose ids have the same beginning are several groups: the first is the largest.
    named = [
        one
        for one in kept
        if one.invocation.scenario_id is not None
        and has_label(name_of(one.invocation.scenario_id), name_of(scenario_id))
    ]
    found = grouped(named, all_scenarios=True)
    left_out = dict(found.left_out.most_common())
    if not found.groups:
        return _Found(scenario_id, tenant, 0, None, left_out)
    largest = found.groups[0]
    return _Found(scenario_id, tenant, len(largest.turns[0]), propose(largest), left_out)


def _newest(connection: Connection, tenant: str | None, scenario_id: str) -> list[StoredResult]:
    """The newest runs of a scenario, of one tenant."""
    # The results and the list of ids without a reference hold only the beginning of long ids.
    wanted = Filter(tenant=tenant, scenario=name_of(scenario_id))
    found = find(connection, wanted, MAX_RUNS).results
    tenants = {one.tenant for one in found}
    if len(tenants) > 1 and "" in tenants:  # links name the tenant, unless it has no name
        found = find(connection, replace(wanted, tenant=""), MAX_RUNS).results
    elif len(tenants) > 1:
        raise ProblemError(422, "tenant: found runs of several, expected one")
    return [one for one in found if one.session is None]


def _kept(
    connection: Connection, runs: Sequence[StoredResult], rules: VerdictRules
) -> Iterator[Observed]:
    """What is kept of the runs, as far as it is kept in full."""
    people = opinions(connection, runs, rules)
    calls = 0
    for one in runs:
        evidence = evidence_rows.find(connection, one.key)
        if evidence is None:
            continue
        calls += len(evidence.invocation.tool_calls)
        if calls > _MAX_CALLS:
            return
        observed = observed_in(evidence, people.get(one.key, NOBODY))
        if observed is not None:
            yield observed

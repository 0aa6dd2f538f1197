"""A reference that is proposed from kept runs of a scenario: a page with evidence, and a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from starlette.responses import Response

from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.core.curation.grouping import Group, Observed, grouped
from pathgauge.collector.core.curation.kept import observed_in
from pathgauge.collector.core.curation.proposal import MIN_RUNS, Proposal, propose
from pathgauge.collector.core.curation.written import document, said
from pathgauge.collector.core.feedback.opinion import NOBODY
from pathgauge.collector.store.evidence import table as evidence_rows
from pathgauge.collector.store.queries.feedback import opinions
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.results import find
from pathgauge.collector.web import answers, links
from pathgauge.collector.web.visit import Page, Visit

MAX_RUNS = 200
"""Runs that are learned from: the newest. `pathgauge curate` reads more, beside the collector."""
_MAX_CALLS = 5_000
"""Calls of all these runs, so that a query takes no longer than about a second."""
_MAX_FACTS = 200


class _Found(NamedTuple):
    scenario_id: str
    runs: int
    """The kept runs that may be learned from."""
    proposal: Proposal | None


def proposal(visit: Visit) -> Page:
    """The page."""
    found = _found(visit)
    values: dict[str, Any] = {
        "proposal": found.proposal,
        "scenario_id": found.scenario_id,
        "runs": found.runs,
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
            "file_link": links.proposal_file(found.scenario_id, visit.query.get("tenant", "")),
        },
    )


def proposal_file(visit: Visit) -> Response:
    """The YAML."""
    if visit.path["file"] != links.PROPOSAL_FILE:
        raise ProblemError(404, f"found no such file, expected {links.PROPOSAL_FILE}")
    found = _found(visit)
    if found.proposal is None:
        raise ProblemError(404, f"{found.runs} runs are kept, expected {MIN_RUNS} or more.")
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
    observed = [
        one
        for one in _kept(visit, scenario_id)
        if one is not None and one.invocation.scenario_id == scenario_id
    ]
    groups: list[Group] = grouped(observed, all_scenarios=True).groups
    if not groups:
        return _Found(scenario_id, 0, None)
    return _Found(scenario_id, len(groups[0].turns[0]), propose(groups[0]))


def _kept(visit: Visit, scenario_id: str) -> Iterator[Observed | None]:
    """The newest runs with evidence, of one tenant."""
    reading = visit.sources.reading
    if reading is None or not scenario_id:
        return
    wanted = Filter(tenant=visit.shown_tenant, scenario=scenario_id)
    with reading() as connection:
        page = find(connection, wanted, MAX_RUNS)
        runs = [one for one in page.results if one.session is None]
        if len({one.tenant for one in runs}) > 1:
            raise ProblemError(422, "tenant: found runs of several, expected one")
        people = opinions(connection, runs, visit.sources.verdict_rules)
        calls = 0
        for one in runs:
            evidence = evidence_rows.find(connection, one.key)
            calls += 0 if evidence is None else len(evidence.invocation.tool_calls)
            if calls > _MAX_CALLS:
                return
            opinion = people.get(one.key, NOBODY)
            yield None if evidence is None else observed_in(evidence, opinion)

"""The addresses of the pages, which alerts and other programs link to as well."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from pathgauge.collector.config.operating import AGENT, SCENARIO, TRACE_ID

PROPOSAL_FILE = "reference.yaml"
NO_NAME = '""'
"""Stands for results without the name of an agent or scenario. An empty field of the form stands
for all.
"""


def with_query(path: str, query: Mapping[str, str | int | None]) -> str:
    """The path with the parameters that have a value."""
    given = {
        name: _encodable(str(value)) for name, value in query.items() if value not in (None, "")
    }
    return f"{path}?{urlencode(given)}" if given else path


def results(**query: str | int | None) -> str:
    """The list of results with these filters."""
    return with_query("/results", query)


def results_of(
    agent: str | None, scenario_id: str | None, tenant: str, **query: str | int | None
) -> str:
    """The list of results of one agent in one scenario, which may have no names."""
    return results(agent=agent or NO_NAME, scenario=scenario_id or NO_NAME, tenant=tenant, **query)


def result(trace_id: str, span_id: str, tenant: str = "") -> str:
    """The page of one result."""
    return with_query(f"/results/{_part(trace_id)}/{_part(span_id)}", {"tenant": tenant})


def recorded(trace_id: str, span_id: str, tenant: str = "") -> str:
    """The reference file that expects what this run did."""
    path = f"/results/{_part(trace_id)}/{_part(span_id)}/reference.yaml"
    return with_query(path, {"tenant": tenant})


def proposal(scenario_id: str, tenant: str = "") -> str:
    """The page of a proposed reference."""
    return with_query("/references/proposal", {"scenario": scenario_id, "tenant": tenant})


def proposal_file(scenario_id: str, tenant: str = "") -> str:
    """The same as YAML."""
    return with_query(
        f"/references/proposal/{PROPOSAL_FILE}", {"scenario": scenario_id, "tenant": tenant}
    )


def feedback(trace_id: str, span_id: str, tenant: str = "") -> str:
    """Where the form about a result is sent to."""
    path = f"/results/{_part(trace_id)}/{_part(span_id)}/feedback"
    return with_query(path, {"tenant": tenant})


def scenario(agent: str | None, scenario_id: str | None, tenant: str = "") -> str:
    """The page of one agent in one scenario."""
    query = {"agent": agent, "scenario": scenario_id, "tenant": tenant}
    return with_query("/scenario", query)


def trace(template: str, trace_id: str) -> str:
    """The page of the trace in its backend."""
    return template.replace(TRACE_ID, _part(trace_id))


def dashboard(template: str, agent: str, scenario_id: str) -> str:
    """The dashboard of an agent in a scenario."""
    return template.replace(AGENT, _part(agent)).replace(SCENARIO, _part(scenario_id))


def _part(text: str) -> str:
    return quote(_encodable(text), safe="")


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()

"""Says which name may be misspelt when a command finds nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from operator import attrgetter
from typing import Literal, TypeAlias

from pathgauge.collector.api.drift_models import DriftReport
from pathgauge.collector.api.queries import DriftQuery, ResultQuery, ShadowQuery, VerdictQuery
from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.cli.queries import query_of
from pathgauge.collector.cli.result_sources.source import ResultSource, newest
from pathgauge.collector.cli.result_sources.store import StoreSource
from pathgauge.collector.config import Config
from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.store.queries.results import MAX_LIMIT
from pathgauge.collector.store.schema import name_of
from pathgauge.scorers.matching.wording import short

_Kind: TypeAlias = Literal["agent", "scenario", "tenant"]
_FIELDS: Mapping[_Kind, str] = {"agent": "agent", "scenario": "scenario_id", "tenant": "tenant"}
_WITH_RESULTS: Mapping[_Kind, str] = {
    "agent": "an agent with results",
    "scenario": "a scenario with results",
    "tenant": "a tenant with results",
}
_MAX_NAMES = 10
_MAX_RESULTS = 2_500
"""Results whose names are looked at."""


def unknown_agent(
    source: ResultSource, query: VerdictQuery | ShadowQuery, found: ReleaseVerdict
) -> str | None:
    """What is known in place of an agent that certainly has no result, while others have some.
    Raises `StoreError`.
    """
    if found.version_results or found.against_results:
        return None
    return without_results(source, "agent", query.agent, query.tenant)


def without_results(
    source: ResultSource, kind: _Kind, name: str, tenant: str | None = None
) -> str | None:
    """The same for any agent, scenario or tenant. Raises `StoreError`."""
    own = source.results(query_of(ResultQuery, {"tenant": tenant, kind: name}, limit=1))
    if own.results or own.next is not None:
        return None
    every = newest(source, ResultQuery(tenant=tenant, limit=MAX_LIMIT, cursor=None), _MAX_RESULTS)
    name_in = attrgetter(_FIELDS[kind])
    known = sorted({name_in(one) for one in every} - {None, ""})
    if not known:
        return None
    expected = f"expected {_WITH_RESULTS[kind]}, such as {_listed(known)}"
    return f"{kind}: found {short(name)}, {expected}{did_you_mean(name, known)}"


def missing_in_store(config: Config, scenario: str | None, tenant: str | None) -> list[str]:
    """The same for the store of a configuration. Raises as `StoreSource` does."""
    source = StoreSource(config)
    hints = [
        scenario and without_results(source, "scenario", name_of(scenario)),
        tenant and without_results(source, "tenant", tenant),
    ]
    return [hint for hint in hints if hint]


def known_versions(
    source: ResultSource, query: VerdictQuery | ShadowQuery, found: ReleaseVerdict
) -> str | None:
    """Which versions an agent has when one of the compared ones has no result, or which option
    leaves out theirs. Raises `StoreError`.
    """
    if isinstance(query, ShadowQuery) or (found.version_results and found.against_results):
        return None
    if query.scenario is not None:
        scenario = name_of(query.scenario)
        if hint := without_results(source, "scenario", scenario, query.tenant):
            return hint
    of_agent = ResultQuery(agent=query.agent, tenant=query.tenant, limit=MAX_LIMIT, cursor=None)
    own = newest(source, of_agent, _MAX_RESULTS)
    known = dict.fromkeys(one.agent_version for one in own if one.agent_version)
    if not known:
        return None
    given = [f"--{name}" for name in ("scenario", "since", "until") if getattr(query, name)]
    has_both = {name_of(query.version), name_of(query.against)} <= known.keys()
    without = f" without {' and '.join(given)}" if given and has_both else ""
    return f"{query.agent} has results of {_listed(known)}{without}"


def compared_names(source: ResultSource, query: DriftQuery, found: DriftReport) -> str | None:
    """The agents that have something to explain when one has not, or its scenarios and metrics.
    Raises `StoreError`.
    """
    if found.streams or found.traffic:
        return None
    every = source.drifts(DriftQuery(tenant=query.tenant))
    agents = {one.agent for one in every.streams} | {one.agent for one in every.traffic}
    agent = query.agent or ""
    if not agents:
        return None
    if agent not in agents:
        known = sorted(agents)
        return f"agents that were watched: {_listed(known)}{did_you_mean(agent, known)}"
    streams = [one for one in every.streams if one.agent == agent]
    scenarios = sorted({one.scenario_id for one in streams if one.scenario_id})
    metrics = sorted({one.metric for one in streams})
    return f"{agent} has scenarios: {_listed(scenarios)}; metrics: {_listed(metrics)}"


def _listed(names: Iterable[str]) -> str:
    first = list(islice(names, _MAX_NAMES + 1))
    more = ", ..." if len(first) > _MAX_NAMES else ""
    return ", ".join(first[:_MAX_NAMES]) + more

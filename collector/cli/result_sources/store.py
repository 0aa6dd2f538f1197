"""Reads results from the store of a collector, whether or not it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pathgauge.collector.api import drifts, models, reading, releases, shadowing
from pathgauge.collector.api.drift_models import DriftReport
from pathgauge.collector.api.problems import SEVERAL_TENANTS, ProblemError
from pathgauge.collector.api.queries import (
    ClusterQuery,
    DriftQuery,
    ResultQuery,
    ShadowQuery,
    VerdictQuery,
)
from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.cli.result_sources.source import SourceError
from pathgauge.collector.config import Config, reference_files
from pathgauge.collector.config.active import resolve
from pathgauge.collector.config.feedback import Feedback
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.core.references.closest_ids import ClosestIds
from pathgauge.collector.core.traffic.drift import TrafficDrift
from pathgauge.collector.sinks.prometheus.drift.recording import NAME as DRIFT, explained, states_of
from pathgauge.collector.sinks.prometheus.last_seen import VERSIONS, first_seen_of
from pathgauge.collector.sinks.prometheus.traffic import recording as traffic
from pathgauge.collector.store.queries.counts import counts_named
from pathgauge.collector.store.queries.reading import (
    MAX_SECONDS,
    Reading,
    reading as reading_store,
)
from pathgauge.collector.store.queries.unmatched import unmatched_scenarios
from pathgauge.collector.store.sqlite import files

CLUSTERS_S = 10.0
"""How long failures are grouped; the API gives it a fraction of a second."""
VERDICT_S = 60.0
"""How long results are read for a verdict: no other reader waits for this process."""


class StoreSource:
    """The store that a configuration names. Without a running collector there are no scores in
    memory, so only the answers that need none are given.
    """

    def __init__(self, config: Config) -> None:
        """Raises `ConfigError` or `StoreError` if there is no store that can be read."""
        self._reading = _opening(config)
        self._config = config
        self._sources = Sources(
            None,
            tuple,
            lambda: ((), 0),
            tuple,
            _no_telemetry,
            database=self._reading,
            verdict_rules=(config.feedback or Feedback()).rules(),
        )
        with self._reading():
            pass

    def results(self, query: ResultQuery) -> models.Results:
        """One page of results, the newest first."""
        with _problems():
            return reading.results(self._sources, None, query)

    def explained(
        self, trace_id: str, span_id: str | None = None, tenant: str | None = None
    ) -> models.ExplainedTrace:
        """The results of a trace, or of one invocation in it, with what explains them."""
        found = reading.explained(self._sources, tenant, trace_id, span_id)
        if span_id is not None and len(found.results) > 1:
            raise SourceError(SEVERAL_TENANTS)
        return found

    def clusters(self, query: ClusterQuery) -> models.Clusters:
        """Failures, grouped by what failed."""
        with _problems():
            return reading.clusters(self._patient(CLUSTERS_S), None, query, CLUSTERS_S)

    def unmatched(self) -> models.Unmatched:
        """Scenario ids without a reference, counted over the newest results."""
        with self._reading() as connection:
            found = unmatched_scenarios(connection)
        known = self._known_ids()
        return models.Unmatched(
            scenarios=[
                models.UnmatchedScenario(
                    tenant=one.tenant,
                    scenario_id=one.scenario_id,
                    invocations=one.invocations,
                    closest=list(known.of(one.scenario_id)),
                )
                for one in found.scenarios
            ],
            further_invocations=found.further_invocations,
        )

    def trace(self, trace_id: str, tenant: str | None = None) -> models.Trace:
        """A trace of this tenant as OTLP/JSON. Without `tenant`, only one may have it."""
        found = reading.trace(self._sources, tenant, trace_id)
        if found is None:
            raise SourceError(f"trace {trace_id}: neither the journal nor the evidence holds it")
        return found

    def verdict(self, query: VerdictQuery) -> ReleaseVerdict:
        """Whether a version of an agent is better or worse than another. Raises `ConfigError` if
        the criteria cannot be built: they say which scores are better.
        """
        return self._verdict(lambda found: releases.verdict(found, None, query, VERDICT_S))

    def shadow_verdict(self, query: ShadowQuery) -> ReleaseVerdict:
        """Whether scores in shadow are better or worse than the active ones. Raises as `verdict`
        does.
        """
        return self._verdict(lambda found: shadowing.verdict(found, None, query, VERDICT_S))

    def _verdict(self, verdict: Callable[[Sources], ReleaseVerdict]) -> ReleaseVerdict:
        evaluator = resolve(self._config).evaluator
        sources = replace(self._patient(VERDICT_S), evaluator=lambda: evaluator)
        with _problems():
            return verdict(sources)

    def _patient(self, seconds: float) -> Sources:
        """The same for queries that may take so long."""
        return replace(self._sources, database=_opening(self._config, 2 * seconds))

    def drifts(self, query: DriftQuery) -> DriftReport:
        """Which scores became worse, and what changed, as of the last commit. Without the section
        `drift`, nothing is known any more.
        """
        options = self._config.drift
        if options is None:
            return drifts.report(self._sources, None, query)
        with self._reading() as connection:
            states = list(states_of(counts_named(connection, DRIFT)))
            versions = first_seen_of(counts_named(connection, VERSIONS))
            agents = list(traffic.states_of(counts_named(connection, traffic.NAME)))
        found = Drifts(options.policy(), len(states))
        found.restore(states)
        watched = TrafficDrift(max_agents=len(agents))
        watched.restore(one for one in agents if query.agent in (None, one[0].agent))
        sources = replace(
            self._sources,
            drifts=lambda: explained(found, versions),
            traffic=lambda: watched.snapshot(time.time()),
        )
        return drifts.report(sources, None, query)

    def _known_ids(self) -> ClosestIds:
        """The scenario ids of the references that have no mistakes."""
        loaded = reference_files.load_valid(self._config.references, self._config.folder)
        return ClosestIds(one.reference.scenario_id for one in loaded.entries)


def _no_telemetry() -> models.Telemetry:
    raise SourceError("found no running collector, expected --url")


@contextmanager
def _problems() -> Iterator[None]:
    """Tells the problems of a request as those of a source."""
    try:
        yield
    except ProblemError as error:
        raise SourceError(error.detail) from error


def _opening(config: Config, max_seconds: float = MAX_SECONDS) -> Reading:
    """Opens the results of one query, whose statements may take so long. Raises `ConfigError` or
    `StoreError` if there are none.
    """
    if config.postgres is not None:
        from pathgauge.collector.store.postgres.reading import PostgresReading

        return PostgresReading(config.postgres.conninfo, max_seconds, keep_idle=False)
    if config.store is None:
        text = (
            "found memory, expected a store on disk: without one no results are kept; set"
            " `store: {path: pathgauge-data}`, and restart the collector"
        )
        raise ConfigError([config.problem(("store",), text)])
    folder = config.folder / config.store.path
    if not (folder / files.DATABASE).exists():
        raise SourceError(
            f"{folder}: found no store, expected the folder of a collector; name its"
            " configuration with --config, or its address with --url"
        )
    return partial(reading_store, folder, max_seconds)

"""What commands ask about stored results, wherever the answers come from. The answers are those of
the API, so that they are printed by the same code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pathgauge.collector import config as configuration
from pathgauge.collector.api import models
from pathgauge.collector.api.drift_models import DriftReport
from pathgauge.collector.api.queries import (
    ClusterQuery,
    DriftQuery,
    ResultQuery,
    ShadowQuery,
    VerdictQuery,
)
from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.store import StoreError


class SourceError(StoreError):
    """There is no answer; the message tells the operator why, and what to do."""


class UnavailableError(SourceError):
    """There is no answer now. Another attempt may succeed."""


class ResultSource(Protocol):
    """Answers the queries. All methods raise `StoreError`."""

    def results(self, query: ResultQuery) -> models.Results:
        """One page of results, the newest first."""
        ...

    def explained(
        self, trace_id: str, span_id: str | None = None, tenant: str | None = None
    ) -> models.ExplainedTrace:
        """The results of a trace, or of one invocation in it, with what explains them. Without
        `tenant`, those of all tenants; of one invocation, only one may have it.
        """
        ...

    def clusters(self, query: ClusterQuery) -> models.Clusters:
        """Failures, grouped by what failed."""
        ...

    def unmatched(self) -> models.Unmatched:
        """Scenario ids without a reference, the most frequent first."""
        ...

    def trace(self, trace_id: str, tenant: str | None = None) -> models.Trace:
        """A trace of this tenant as OTLP/JSON. Without `tenant`, only one may have it."""
        ...

    def verdict(self, query: VerdictQuery) -> ReleaseVerdict:
        """Whether a version of an agent is better or worse than another."""
        ...

    def shadow_verdict(self, query: ShadowQuery) -> ReleaseVerdict:
        """Whether scores in shadow are better or worse than the active ones."""
        ...

    def drifts(self, query: DriftQuery) -> DriftReport:
        """Which scores became worse, and what changed."""
        ...


def source_of(
    config: Path | None,
    url: str | None = None,
    token_file: Path | None = None,
    ca_file: Path | None = None,
    *,
    with_scorers: bool = False,
) -> ResultSource:
    """The API at `url`, or else the store that the configuration names. Only verdicts need it
    `with_scorers`. Raises `ConfigError`, or `StoreError`.
    """
    if url is not None:
        from pathgauge.collector.cli.result_sources.http import HttpSource

        return HttpSource(url, token_file, ca_file)
    from pathgauge.collector.cli.result_sources.store import StoreSource

    return StoreSource(configuration.load(config, with_scorers=with_scorers))


def newest(source: ResultSource, query: ResultQuery, limit: int) -> Iterator[models.Result]:
    """At most `limit` results, the newest first, from as many pages as it takes."""
    while limit > 0:
        page = source.results(query)
        yield from page.results[:limit]
        limit -= len(page.results)
        if page.next is None:
            return
        query = query.model_copy(update={"cursor": page.next})

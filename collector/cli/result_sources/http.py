"""Asks a running collector over its API."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

from pathgauge.collector.api import models
from pathgauge.collector.api.drift_models import DriftReport
from pathgauge.collector.api.mcp import tokens
from pathgauge.collector.api.mcp.collector import Collector, CollectorError, Parameter
from pathgauge.collector.api.models import Model, time_of
from pathgauge.collector.api.queries import (
    ClusterQuery,
    DriftQuery,
    Query,
    ResultQuery,
    ShadowQuery,
    TraceQuery,
    VerdictQuery,
)
from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.cli.result_sources.source import SourceError, UnavailableError

_TIMES = ("since", "until")

_ModelT = TypeVar("_ModelT", bound=Model)


class HttpSource:
    """The collector at a URL."""

    def __init__(
        self, url: str, token_file: Path | None = None, ca_file: Path | None = None
    ) -> None:
        """Without a `token_file`, the token is that of `PATHGAUGE_TOKEN`, if it is set. Raises
        `SourceError`, or OSError for the file.
        """
        try:
            self._collector = Collector(url, ca_file)
            self._token = tokens.source(token_file)()
        except ValueError as error:
            raise SourceError(str(error)) from error

    def results(self, query: ResultQuery) -> models.Results:
        """One page of results, the newest first."""
        return self._get(models.Results, ("results",), query)

    def explained(
        self, trace_id: str, span_id: str | None = None, tenant: str | None = None
    ) -> models.ExplainedTrace:
        """The results of a trace, or of one invocation in it, with what explains them."""
        query = TraceQuery(tenant=tenant)
        if span_id is None:
            return self._get(models.ExplainedTrace, ("results", trace_id), query)
        one = self._get(models.Explained, ("results", trace_id, span_id), query)
        return models.ExplainedTrace(results=[one])

    def clusters(self, query: ClusterQuery) -> models.Clusters:
        """Failures, grouped by what failed."""
        return self._get(models.Clusters, ("clusters",), query)

    def unmatched(self) -> models.Unmatched:
        """Scenario ids without a reference, the most frequent first."""
        return self._get(models.Unmatched, ("unmatched",))

    def trace(self, trace_id: str, tenant: str | None = None) -> models.Trace:
        """A trace of this tenant as OTLP/JSON. Without `tenant`, only one may have it."""
        return self._get(models.Trace, ("traces", trace_id), TraceQuery(tenant=tenant))

    def verdict(self, query: VerdictQuery) -> ReleaseVerdict:
        """Whether a version of an agent is better or worse than another."""
        return self._get(ReleaseVerdict, ("verdict",), query)

    def shadow_verdict(self, query: ShadowQuery) -> ReleaseVerdict:
        """Whether scores in shadow are better or worse than the active ones."""
        return self._get(ReleaseVerdict, ("shadow",), query)

    def drifts(self, query: DriftQuery) -> DriftReport:
        """Which scores became worse, and what changed."""
        return self._get(DriftReport, ("drift",), query)

    def _get(
        self, model: type[_ModelT], path: tuple[str, ...], query: Query | None = None
    ) -> _ModelT:
        try:
            return self._collector.get(model, self._token, path, _parameters(query))
        except CollectorError as error:
            raise self._explained_error(error) from error

    def _explained_error(self, error: CollectorError) -> SourceError:
        match error.status:
            case HTTPStatus.UNAUTHORIZED:
                found = "no token" if self._token is None else "an unknown token"
                return SourceError(
                    f"{self._collector.url}: found {found}, expected one that the collector"
                    f" accepts: give it with --token-file, or in {tokens.VARIABLE}"
                )
            case HTTPStatus.SERVICE_UNAVAILABLE:
                return UnavailableError(self._named(error))
            case _:
                return SourceError(self._named(error))

    def _named(self, error: CollectorError) -> str:
        """The text with the address that was asked."""
        text, url = str(error), self._collector.url
        return text if url in text else f"{url}: {text}"


def _parameters(query: Query | None) -> dict[str, Parameter]:
    if query is None:
        return {}
    given = query.model_dump(exclude_none=True)
    return {
        name: time_of(value).isoformat() if name in _TIMES else value
        for name, value in given.items()
    }

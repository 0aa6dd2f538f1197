"""The endpoints of the API: one list, from which routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from pathgauge.collector.api import (
    comparing,
    drifts,
    feedback,
    models,
    overview,
    reading,
    releases,
    shadowing,
)
from pathgauge.collector.api.drift_models import DriftReport
from pathgauge.collector.api.feedback_models import (
    AgreementQuery,
    Agreements,
    FeedbackQuery,
    GivenAnswers,
)
from pathgauge.collector.api.problems import SEVERAL_TENANTS, ProblemError
from pathgauge.collector.api.queries import (
    ClusterQuery,
    DriftQuery,
    Query,
    ReferenceQuery,
    ResultQuery,
    ShadowQuery,
    TraceQuery,
    VerdictQuery,
    VersionQuery,
)
from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.api.sources import Sources

PREFIX = "/api/v1"

Answer = Callable[[Sources, "str | None", Any, Mapping[str, str]], BaseModel]
"""Answers a query: sources, tenant (`None`: all), parameters, and parts of the path."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One thing that can be asked."""

    path: str
    """Below the prefix; `{name}` is a part of it."""
    summary: str
    answer: Answer
    model: type[BaseModel]
    query: type[Query] = Query
    of_gauge: bool = False
    """Whether the answer is in the memory of the gauge, so that a standby has none."""


def _explained(
    sources: Sources, tenant: str | None, query: TraceQuery, path: Mapping[str, str]
) -> models.Explained:
    tenant = query.tenant if tenant is None else tenant
    found = reading.explained(sources, tenant, path["trace_id"], path["span_id"])
    if not found.results:
        raise ProblemError(404, "no result of this trace and span is stored")
    if len(found.results) > 1:
        raise ProblemError(409, SEVERAL_TENANTS)
    return found.results[0]


def _explained_trace(
    sources: Sources, tenant: str | None, query: TraceQuery, path: Mapping[str, str]
) -> models.ExplainedTrace:
    tenant = query.tenant if tenant is None else tenant
    found = reading.explained(sources, tenant, path["trace_id"])
    if not found.results:
        raise ProblemError(404, "no result of this trace is stored")
    return found


def _trace(
    sources: Sources, tenant: str | None, query: TraceQuery, path: Mapping[str, str]
) -> models.Trace:
    tenant = query.tenant if tenant is None else tenant
    found = reading.trace(sources, tenant, path["trace_id"])
    if found is None:
        raise ProblemError(404, "neither the journal nor the evidence holds this trace")
    return found


ENDPOINTS = (
    Endpoint(
        "/summary",
        "Agents and scenarios with recent scores, the worst first",
        lambda sources, tenant, query, path: overview.summary(sources, tenant),
        models.Summary,
        of_gauge=True,
    ),
    Endpoint(
        "/results",
        "Results, the newest first",
        lambda sources, tenant, query, path: reading.results(sources, tenant, query),
        models.Results,
        ResultQuery,
    ),
    Endpoint(
        "/results/{trace_id}",
        "All results of a trace, with what explains them",
        _explained_trace,
        models.ExplainedTrace,
        TraceQuery,
    ),
    Endpoint(
        "/results/{trace_id}/{span_id}",
        "One result, with what explains it",
        _explained,
        models.Explained,
        TraceQuery,
    ),
    Endpoint(
        "/clusters",
        "Failures, grouped by what failed",
        lambda sources, tenant, query, path: reading.clusters(sources, tenant, query),
        models.Clusters,
        ClusterQuery,
    ),
    Endpoint(
        "/traces/{trace_id}",
        "A trace as OTLP/JSON, as it was sent or rebuilt from the evidence",
        _trace,
        models.Trace,
        TraceQuery,
    ),
    Endpoint(
        "/unmatched",
        "Scenario ids in the traffic without a reference",
        lambda sources, tenant, query, path: overview.unmatched(sources, tenant),
        models.Unmatched,
        of_gauge=True,
    ),
    Endpoint(
        "/references",
        "The active references, and when they were last used",
        lambda sources, tenant, query, path: overview.references(sources, tenant),
        models.References,
    ),
    Endpoint(
        "/versions",
        "Verdicts and mean scores by the version of the agent, the newest first",
        lambda sources, tenant, query, path: comparing.versions(sources, tenant, query),
        models.Versions,
        VersionQuery,
    ),
    Endpoint(
        "/drift",
        "Scores that became worse, agents that call other tools, and what changed",
        lambda sources, tenant, query, path: drifts.report(sources, tenant, query),
        DriftReport,
        DriftQuery,
        of_gauge=True,
    ),
    Endpoint(
        "/verdict",
        "Whether a version of an agent is better or worse than another",
        lambda sources, tenant, query, path: releases.verdict(sources, tenant, query),
        ReleaseVerdict,
        VerdictQuery,
    ),
    Endpoint(
        "/shadow",
        "Whether scores in shadow are better or worse than the active ones",
        lambda sources, tenant, query, path: shadowing.verdict(sources, tenant, query),
        ReleaseVerdict,
        ShadowQuery,
    ),
    Endpoint(
        "/feedback",
        "What people said of an invocation, a trace or a conversation",
        lambda sources, tenant, query, path: feedback.given(sources, tenant, query),
        GivenAnswers,
        FeedbackQuery,
    ),
    Endpoint(
        "/agreement",
        "How far the verdicts of each criterion agree with those of people",
        lambda sources, tenant, query, path: feedback.agreements(sources, tenant, query),
        Agreements,
        AgreementQuery,
    ),
    Endpoint(
        "/reference",
        "The active reference of a scenario, else the one it was last evaluated against",
        lambda sources, tenant, query, path: comparing.reference(sources, tenant, query),
        models.ReferenceDocument,
        ReferenceQuery,
    ),
)

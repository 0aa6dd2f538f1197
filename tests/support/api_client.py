"""A client of the API over a store, in the process of the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from pathgauge.collector.api.app import routes
from pathgauge.collector.api.authorization import Authorization
from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.api.models import Telemetry
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.receivers.auth.tenants import Tenants
from pathgauge.collector.receivers.auth.tokens import TokenFile
from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.scorers.types import Reference

TELEMETRY = Telemetry(
    spans_received=10,
    spans_refused=1,
    spans_dropped=2,
    invocations_read=3,
    invocations_scored=2,
    invocations_skipped=1,
    open_traces=4,
    unread_scopes={"acme.agents": 5},
)
READER, NORTH, SOUTH = ("reader-token-0000", "north-token-00000", "south-token-00000")


def sources(
    folder: Path | None,
    *,
    scores: Callable[[], Sequence[CurrentScore]] = tuple,
    unknown: Sequence[UnknownScenario] = (),
    references: Sequence[Reference] = (),
    drifts: Callable[[], Sequence[Explained]] = tuple,
    traffic: Callable[[], Sequence[TrafficStatus]] = tuple,
    is_standby: bool = False,
) -> Sources:
    return Sources(
        folder,
        scores,
        lambda: (unknown, 7),
        lambda: references,
        lambda: TELEMETRY,
        drifts=drifts,
        traffic=traffic,
        is_standby=lambda: is_standby,
    )


def client(found: Sources, authorization: Authorization | None = None) -> TestClient:
    """Without `authorization`, everything is open."""
    api = routes(found, authorization or Authorization(None, None), QueryThread(found.is_busy))
    return TestClient(create_app(CollectorRegistry(), with_own_authorization=api))


def with_tokens(folder: Path) -> Authorization:
    """A reader's token, and those of the tenants `north` and `south`."""
    files = {}
    for name, token in {"reader": READER, "north": NORTH, "south": SOUTH}.items():
        path = folder / f"{name}.token"
        path.write_text(token)
        path.chmod(0o600)
        files[name] = TokenFile(path)
    readers = files.pop("reader")
    return Authorization(readers, Tenants(files, {}).authenticate)


def get(api: TestClient, path: str, **headers: str) -> Any:
    """The answer to a query that succeeds, as JSON values."""
    answer = api.get(PREFIX + path, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()

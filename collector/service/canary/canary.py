"""Proves the way from the socket to the score: a canary is sent every interval, and its evaluation
is waited for; metrics go out.

A canary is known by its tenant, which stands for a token that is made at the start and that nobody
else has: an agent that calls itself like ours is an agent like any other.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Literal, TypeAlias, get_args

import structlog
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.receivers.auth.tenants import Authenticate, Credentials
from pathgauge.collector.receivers.auth.tokens import bearer
from pathgauge.collector.service.canary.send import Send, export_request
from pathgauge.collector.sinks import Sink
from pathgauge.collector.sinks.prometheus.live_metrics import Live

TENANT = "(canary)"
"""No tenant of a configuration can have that name."""

PATIENCE_S = 60.0
"""How long a score may take beyond `settle`."""

DELAY_BUCKETS = (0.5, 1, 2, 4, 6, 7, 8, 10, 15, 30, 60, 120)

CanaryResult: TypeAlias = Literal["ok", "lost", "refused"]

_log = structlog.get_logger(__name__)


class Canary(Collector):
    """Sends from the event loop, and is a sink among those that are told what is durable."""

    def __init__(self, interval: float, patience: float) -> None:
        """Both in seconds. A canary without a score after `patience` is lost."""
        self.token = secrets.token_urlsafe(32)
        self._interval = interval
        self._patience = patience
        self._waiting: dict[str, Future[float]] = {}
        self._succeeded_at: float | None = None
        self._traces = Counter(
            "pathgauge_canary_traces",
            "Canaries, by what became of them.",
            ("outcome",),
            registry=None,
        )
        for outcome in get_args(CanaryResult):
            self._traces.labels(outcome)
        self._delay = Histogram(
            "pathgauge_canary_delay_seconds",
            "Time from sending a canary until its score.",
            buckets=DELAY_BUCKETS,
            registry=None,
        )

    def authenticate(self, others: Authenticate) -> Authenticate:
        """As `others` do, but know the canary by its token."""

        def authenticate(credentials: Credentials) -> str:
            token = bearer(credentials.authorization)
            if token is not None and hmac.compare_digest(
                token.encode("utf-8", "surrogateescape"), self.token.encode()
            ):
                return TENANT
            return others(credentials)

        return authenticate

    async def run(self, send: Send) -> None:
        """Send a canary every interval, until cancelled."""
        async with asyncio.TaskGroup() as under_way:
            while True:
                under_way.create_task(self._fly(send))
                await asyncio.sleep(self._interval)

    async def _fly(self, send: Send) -> None:
        trace_id = secrets.token_bytes(16)
        scored: Future[float] = Future()
        scored.set_running_or_notify_cancel()
        self._waiting[trace_id.hex()] = scored
        sent_at = time.monotonic()
        try:
            refusal = await send(export_request(trace_id))
            if refusal is None:
                await self._wait(scored, trace_id.hex(), sent_at)
            else:
                _log.warning("canary refused", reason=refusal)
                self._traces.labels("refused").inc()
        except Exception:  # the next one may fare better
            _log.exception("canary could not be sent")
            self._traces.labels("refused").inc()
        finally:
            self._waiting.pop(trace_id.hex(), None)

    async def _wait(self, scored: Future[float], trace_id: str, sent_at: float) -> None:
        try:
            scored_at = await asyncio.wait_for(asyncio.wrap_future(scored), self._patience)
        except TimeoutError:
            _log.error(
                "canary lost: it was acknowledged, but has no score",
                trace_id=trace_id,
                waited_s=self._patience,
            )
            self._traces.labels("lost").inc()
        else:
            self._delay.observe(scored_at - sent_at)
            self._succeeded_at = time.time()
            self._traces.labels("ok").inc()

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Note that a canary has its score; runs in the worker thread."""
        tenant, trace_id, _ = evaluation.key
        scored = self._waiting.pop(trace_id, None) if tenant == TENANT else None
        if scored is not None:
            scored.set_result(time.monotonic())

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Nobody judges canaries."""

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        """Canaries have no conversations."""

    def withdraw(self, key: EvaluationKey) -> None:
        """Whoever had a score once has arrived."""

    def close(self) -> None:
        """Nothing is held back."""

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks its collectors at a scrape."""
        yield from Live((self._traces, self._delay)).collect()
        last = GaugeMetricFamily(
            "pathgauge_canary_last_success_timestamp_seconds",
            "Unix time at which a canary last got its score.",
        )
        if self._succeeded_at is not None:
            last.add_metric((), self._succeeded_at)
        yield last


class WithoutCanary:
    """A sink that is not told of canaries, those of an earlier process included."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Hand on all but canaries."""
        if evaluation.key[0] != TENANT:
            self._sink.publish(evaluation, now)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Hand on: nobody judges canaries."""
        self._sink.publish_judged(judged, now)

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        """Hand on all but canaries."""
        if case.tenant != TENANT:
            self._sink.publish_conversation(case, now)

    def withdraw(self, key: EvaluationKey) -> None:
        """Hand on all but canaries."""
        if key[0] != TENANT:
            self._sink.withdraw(key)

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()

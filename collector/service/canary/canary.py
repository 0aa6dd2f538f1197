"""Tests the whole path from the socket to the score: sends a canary at every interval, waits for
its evaluation, and exports metrics about it.

Canaries are recognized by their tenant. Only a random token, made at the start, gives this tenant.
So another agent with the same name is treated like any agent.
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

from pathgauge.collector.core.evaluations.accounting import CANARY_TENANT
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.receivers.auth.tenants import Authenticate, Credentials
from pathgauge.collector.receivers.auth.tokens import bearer
from pathgauge.collector.service.canary.send import Send, export_request
from pathgauge.collector.sinks.prometheus.live_metrics import Live

MAX_DELAY_S = 60.0
"""A canary is lost when its score takes longer than this, plus the quiet period `settle`."""

DELAY_BUCKETS = (0.5, 1, 2, 4, 6, 7, 8, 10, 15, 30, 60, 120)

CanaryResult: TypeAlias = Literal["ok", "lost", "refused"]
SharedCanaryResult: TypeAlias = Literal["ok", "acknowledged", "refused"]
"""In a cluster the sender does not learn whether there is a score. It counts what it has sent, so
that one refusal of many is not all that is known of it.
"""

_log = structlog.get_logger(__name__)


class Canary(Collector):
    """Sends canaries from the event loop, and as a sink gets their evaluations when durable."""

    def __init__(self, interval: float, max_delay: float, *, shared: bool = False) -> None:
        """Both in seconds. A canary without a score after `max_delay` is lost.

        With `shared`, another process may publish the scores: then the sender does not wait for
        them, and the process that publishes them counts those of all senders.
        """
        self.token = secrets.token_urlsafe(32)
        self._shared = shared
        self._interval = interval
        self._max_delay = max_delay
        self._waiting: dict[str, Future[float]] = {}
        self._told: set[str] = set()
        """What the log has said since a canary was last acknowledged."""
        self._succeeded_at: float | None = None
        self._traces = Counter(
            "pathgauge_canary_traces",
            "Canary traces, by outcome.",
            ("outcome",),
            registry=None,
        )
        for outcome in get_args(SharedCanaryResult if shared else CanaryResult):
            self._traces.labels(outcome)
        self._delay = Histogram(
            "pathgauge_canary_delay_seconds",
            "Time from sending a canary trace until its score can be scraped.",
            buckets=DELAY_BUCKETS,
            registry=None,
        )

    def authenticate(self, others: Authenticate) -> Authenticate:
        """Like `others`, but recognize the canary by its token."""

        def authenticate(credentials: Credentials) -> str:
            token = bearer(credentials.authorization)
            if token is not None and hmac.compare_digest(
                token.encode("utf-8", "surrogateescape"), self.token.encode()
            ):
                return CANARY_TENANT
            return others(credentials)

        return authenticate

    async def run(self, send: Send) -> None:
        """Send a canary every interval, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._send_one(send))
                await asyncio.sleep(self._interval)

    async def _send_one(self, send: Send) -> None:
        trace_id = secrets.token_bytes(16)
        scored: Future[float] = Future()
        scored.set_running_or_notify_cancel()
        if not self._shared:
            self._waiting[trace_id.hex()] = scored
        sent_at = time.monotonic()
        try:
            refusal = await send(export_request(trace_id))
            if refusal is not None:
                if self._is_new("canary refused"):
                    _log.warning("canary refused", reason=refusal)
                self._traces.labels("refused").inc()
                return
            if self._told:
                self._told.clear()
                _log.info("canary acknowledged again")
            if self._shared:
                self._traces.labels("acknowledged").inc()
            else:
                await self._wait(scored, trace_id.hex(), sent_at)
        except Exception:  # the next one may succeed
            if self._is_new("canary could not be sent"):
                _log.exception("canary could not be sent")
            self._traces.labels("refused").inc()
        finally:
            self._waiting.pop(trace_id.hex(), None)

    def _is_new(self, event: str) -> bool:
        """Whether the log has not said so in this outage."""
        is_new = event not in self._told
        self._told.add(event)
        return is_new

    async def _wait(self, scored: Future[float], trace_id: str, sent_at: float) -> None:
        try:
            scored_at = await asyncio.wait_for(asyncio.wrap_future(scored), self._max_delay)
        except TimeoutError:
            _log.error(
                "canary lost: it was acknowledged, but has no score",
                trace_id=trace_id,
                waited_s=self._max_delay,
            )
            self._traces.labels("lost").inc()
        else:
            self._succeed(scored_at - sent_at)

    def _succeed(self, delay: float) -> None:
        self._delay.observe(delay)
        self._succeeded_at = time.time()
        self._traces.labels("ok").inc()

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Record that a canary has its score; called in the thread of the sinks."""
        tenant, trace_id, _ = evaluation.key
        if tenant != CANARY_TENANT:
            return
        scored = self._waiting.pop(trace_id, None)
        if scored is not None:
            scored.set_result(time.monotonic())
        elif self._shared and evaluation.revision == 0:
            sent_at = (evaluation.invocation.start_ns or 0) / 1e9
            if 0 <= now - sent_at <= self._max_delay:
                self._succeed(now - sent_at)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Do nothing: canaries are not judged."""

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Do nothing: canaries have no conversations."""

    def withdraw(self, key: EvaluationKey) -> None:
        """Do nothing: the canary was scored before."""

    def close(self) -> None:
        """Do nothing: nothing is buffered."""

    def collect(self) -> Iterator[Metric]:
        """The metrics; called by prometheus_client at a scrape."""
        yield from Live((self._traces, self._delay)).collect()
        last = GaugeMetricFamily(
            "pathgauge_canary_last_success_timestamp_seconds",
            "Unix time of the last canary trace that was scored in time.",
        )
        if self._succeeded_at is not None:
            last.add_metric((), self._succeeded_at)
        yield last


class WithoutCanary:
    """A sink without the evaluations of canaries, including those of an earlier process."""

    def __init__(self, name: str, sink: Sink) -> None:
        """`name` is the one of its section below `exporters`, for the log."""
        self.name = name
        self._sink = sink

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Pass on, except for canaries."""
        if evaluation.key[0] != CANARY_TENANT:
            self._sink.publish(evaluation, now)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Pass on: canaries are not judged."""
        self._sink.publish_judged(judged, now)

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Pass on, except for canaries."""
        if result.tenant != CANARY_TENANT:
            self._sink.publish_conversation(result, now)

    def withdraw(self, key: EvaluationKey) -> None:
        """Pass on, except for canaries."""
        if key[0] != CANARY_TENANT:
            self._sink.withdraw(key)

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()

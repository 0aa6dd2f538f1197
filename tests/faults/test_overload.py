"""Twice the load that the collector can handle: it refuses requests, its memory stays bounded, and
no acknowledged span is lost.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from support.load import EXPORT, SPANS, Load, invocation, request, with_new_ids
from support.running import until

from .restarted import RestartedCollector
from .sender import UnreachableError, of_grpc
from .sizes import times

pytestmark = pytest.mark.slow

MEASURE_S = times(2, 10)
OVERLOAD_S = times(3, 60)
DRAIN_S = 180.0
RSS_BYTES = 512 << 20
SETTLE_S = 2.0
ANSWER_S = 60.0
READ = "pathgauge_invocations_read_total"
INVOCATIONS = SPANS // len(invocation("0", "mixed"))
"""Of a request."""


@dataclass(slots=True)
class Offered:
    """The answers to requests that were sent at a constant rate."""

    acked: int = 0
    refused: int = 0
    without_delay: list[str] = field(default_factory=list)
    """Refusals without a delay, and other failures."""
    latencies: list[float] = field(default_factory=list)


def offer(endpoint: str, rate: float, seconds: float) -> Offered:
    """Send so many requests per second, regardless of the answers, and wait for the last answer."""
    channel = grpc.insecure_channel(endpoint, compression=grpc.Compression.Gzip)
    export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
        EXPORT, request_serializer=None, response_deserializer=None
    )
    template = request(INVOCATIONS, "mixed").SerializeToString()
    offered, lock, under_way = Offered(), threading.Lock(), threading.Semaphore(0)
    began, sent = time.perf_counter(), 0

    def send() -> None:
        at = time.perf_counter()
        call = export.future(with_new_ids(template, INVOCATIONS), timeout=ANSWER_S)

        def answered(done: grpc.Future[Any]) -> None:
            error = done.exception()
            with lock:
                if error is None:
                    offered.acked += 1
                    offered.latencies.append(time.perf_counter() - at)
                else:
                    assert isinstance(error, grpc.RpcError)
                    refusal = of_grpc(error)
                    offered.refused += 1
                    if not isinstance(refusal, UnreachableError) and not getattr(
                        refusal, "retry_after", None
                    ):
                        offered.without_delay.append(repr(refusal))
            under_way.release()

        call.add_done_callback(answered)

    while (elapsed := time.perf_counter() - began) < seconds:
        if sent < elapsed * rate:
            send()
            sent += 1
        else:
            time.sleep(0.001)
    for _ in range(sent):
        under_way.acquire()
    channel.close()
    return offered


def peak_rss(pid: int) -> int:
    """The peak memory of a process in bytes."""
    [line] = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) * 1024


def capacity(collector: RestartedCollector) -> tuple[float, float]:
    """The number of requests per second that can be received and scored, and how many invocations
    were sent to measure it.
    """
    channel = grpc.insecure_channel(_endpoint(collector), compression=grpc.Compression.Gzip)
    try:
        grpc.channel_ready_future(channel).result(timeout=ANSWER_S)
        began = time.monotonic()
        sent = Load(channel, "mixed").run(MEASURE_S, float("inf"))
    finally:
        channel.close()
    assert until(lambda: collector.value(READ) >= sent["invocations"], DRAIN_S)
    return sent["spans"] / SPANS / (time.monotonic() - began - SETTLE_S), sent["invocations"]


def overloaded(folder: Path, seconds: float, *mistakes: str) -> list[str]:
    """Every broken guarantee in so many seconds at twice the capacity."""
    collector = RestartedCollector(folder, assembly={"settle": f"{SETTLE_S}s"})
    collector.start(*mistakes)
    try:
        most, alone = capacity(collector)
        offered = offer(_endpoint(collector), 2 * most, seconds)
        began, expected = time.monotonic(), alone + offered.acked * INVOCATIONS
        drained = until(lambda: collector.value(READ) >= expected, DRAIN_S)
        took, read, rss = (
            time.monotonic() - began,
            collector.value(READ),
            peak_rss(collector.process.pid),
        )
    finally:
        collector.stop()
    acked = sorted(offered.latencies)
    print(
        f"capacity {most * SPANS:.0f} spans/s, offered {2 * most * SPANS:.0f}, acknowledged"
        f" {offered.acked * SPANS / seconds:.0f}, refused {offered.refused} of"
        f" {offered.refused + offered.acked} requests, ack p50 {acked[len(acked) // 2] * 1000:.0f}"
        f" ms, p99 {acked[len(acked) * 99 // 100] * 1000:.0f} ms, RSS {rss >> 20} MiB, drained in"
        f" {took:.1f} s"
    )
    breaches = (
        [
            f"{len(offered.without_delay)} answers do not say when to retry:"
            f" {offered.without_delay[0]}"
        ]
        if offered.without_delay
        else []
    )
    if not drained or read != expected:
        breaches.append(
            f"{read:g} invocations were read {took:.0f} s after the load, {expected:g} were"
            " acknowledged"
        )
    if rss > RSS_BYTES:
        breaches.append(f"RSS {rss >> 20} MiB")
    return breaches


def _endpoint(collector: RestartedCollector) -> str:
    return f"127.0.0.1:{collector.ports['grpc']}"


def test_twice_the_capacity_is_refused_in_part_and_what_is_taken_is_scored(tmp_path: Path) -> None:
    assert overloaded(tmp_path, OVERLOAD_S) == []


@pytest.mark.long
@pytest.mark.parametrize("mistake", ["keep_everything_in_memory", "refuse_without_a_delay"])
def test_an_overload_brings_to_light(tmp_path: Path, mistake: str) -> None:
    assert overloaded(tmp_path, OVERLOAD_S, mistake) != []

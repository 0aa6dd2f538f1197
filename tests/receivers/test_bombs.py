"""Small requests that expand in memory: a running collector answers each as OTLP specifies, its
memory stays bounded, and it serves others meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from pathgauge.collector.receivers.grpc_calls import MAX_ARRIVING_OF_PEER
from support import http2
from support.bombs import BOMBS, Bomb
from support.healthy import SPANS, Healthy
from support.running import Collector, until

pytestmark = pytest.mark.slow

MAX_GROWTH = 256 << 20
"""Bytes by which the process may grow."""
PARALLEL = 16
STALLED = 30
LARGE = 15_900_000
"""Size of a message in bytes."""
LONGEST_WAIT_S = 5.0
"""Time limit for the answer to a small request between the bombs. Exporters give up after 10 s."""


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with Collector(tmp_path_factory.mktemp("collector")) as started:
        yield started


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_the_sender_is_told_what_is_wrong_and_not_to_try_again(
    bomb: Bomb, collector: Collector
) -> None:
    answer = bomb.send(collector.ports)
    assert answer._replace(message=answer.message[: len(bomb.answer.message)]) == bomb.answer


def test_bombs_in_parallel_cost_little_memory_and_others_nothing(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        with Healthy(collector.ports) as healthy:
            until(lambda: min(healthy.sent["grpc"], healthy.sent["http"]) >= 3)
            before = collector.peak_memory()
            with ThreadPoolExecutor(PARALLEL) as senders:
                answers = list(senders.map(lambda bomb: bomb.send(collector.ports), BOMBS))
            growth = collector.peak_memory() - before
        assert [answer.status for answer in answers] == [bomb.answer.status for bomb in BOMBS]
        assert growth < MAX_GROWTH
        assert (healthy.failures, healthy.longest_s < LONGEST_WAIT_S) == ([], True), (
            healthy.longest_s
        )
        sent = healthy.sent.total()
        assert until(lambda: collector.value("pathgauge_invocations_scored_total") == sent)
        assert collector.series(
            "pathgauge_receiver_requests_total", "transport", "signal", "code"
        ) == requests(healthy)
        assert (
            collector.series("pathgauge_receiver_refused_spans_total", "transport", "reason")
            == refused_spans()
        )
        accepted = sum(bomb.told.accepted for bomb in BOMBS)
        assert collector.value("pathgauge_receiver_accepted_spans_total") == accepted + SPANS * sent


def test_messages_that_never_end_cost_little_memory_and_others_nothing(tmp_path: Path) -> None:
    unfinished = http2.message(bytes(LARGE), length=LARGE + 1)
    with Collector(tmp_path) as collector, ExitStack() as stack:
        with Healthy(collector.ports) as healthy:
            before = collector.peak_memory()
            stalled = [
                stack.enter_context(http2.Connection(collector.ports["grpc"], peer="127.0.0.2"))
                for _ in range(STALLED)
            ]
            with ThreadPoolExecutor(STALLED) as senders:
                let_in = list(senders.map(lambda connection: connection.stall(unfinished), stalled))
        assert let_in.count(True) == MAX_ARRIVING_OF_PEER
        assert collector.peak_memory() - before < MAX_GROWTH
        assert (healthy.failures, healthy.longest_s < LONGEST_WAIT_S) == ([], True), (
            healthy.longest_s
        )


def requests(healthy: Healthy) -> dict[tuple[str, ...], float]:
    counts = Counter[tuple[str, ...]](
        (bomb.way.transport, "traces", bomb.told.code) for bomb in BOMBS
    )
    counts.update({(transport, "traces", "ok"): sent for transport, sent in healthy.sent.items()})
    return dict(counts)


def refused_spans() -> dict[tuple[str, ...], float]:
    counts = Counter[tuple[str, ...]]()
    for bomb in BOMBS:
        counts.update(
            {(bomb.way.transport, bomb.told.reason): bomb.told.rejected}
            if bomb.told.rejected
            else {}
        )
    return dict(counts)

"""Little memory, 3,000 spans a second, traces that never end, and bombs: the collector refuses what
does not fit, stays up, and loses no acknowledged span.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from typing import TypeAlias

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.testing import span
from support.bombs import BOMBS
from support.limited import Prefix, memory_cgroup, small_address_space
from support.load import SPANS
from support.running import until

from .restarted import RestartedCollector
from .sender import GrpcClient, RefusedError, UnansweredError, UnreachableError
from .sizes import times
from .test_overload import DRAIN_S, INVOCATIONS, READ, Offered, offer

pytestmark = pytest.mark.slow

LIMIT = 400 << 20
SPANS_PER_S = 3_000
LOAD_S = times(6, 180)
BOMBERS = times(2, 6)
ENDLESS_S = times(0.2, 0.05)
"""Seconds between two requests with traces that never end."""
ENDLESS_SPANS = 40
ENDLESS_BYTES = times(8 << 20, 256 << 20)
"""How much of them is sent at least: in the long form more than `assembly.max_open_bytes`."""
FILLED_S = 300.0
TEXT_BYTES = 10_000
ASSEMBLY = {"settle": "2s", "idle": "20m", "max_age": "20m"}
HOSTILE = ("[" * 131_000, "(" * 131_000, '{"a":' * 30_000, "{'a': [" * 18_000, "-" * 131_000)
"""Texts that need much stack, or much memory, when they are read as messages."""


@contextmanager
def cgroup(size: int = LIMIT) -> Iterator[Prefix]:
    with memory_cgroup(size) as group:
        yield group.prefix
        print(f"most used: {group.most_used >> 20} MiB")


@contextmanager
def address_space(size: int = LIMIT) -> Iterator[Prefix]:
    yield small_address_space(size)


Limit: TypeAlias = Callable[[], AbstractContextManager[Prefix]]
LEAST: dict[str, Limit] = {
    "cgroup": lambda: cgroup(320 << 20),
    "address space": lambda: address_space(400 << 20),
}
"""Hardly more than the least that the collector starts with."""
LIMITS: dict[str, Limit] = {"cgroup": cgroup, "address space": address_space}


@dataclass(slots=True)
class Background:
    """Threads that send beside the load until the context ends."""

    ports: dict[str, int]
    answers: list[int | str] = field(default_factory=list)
    """The statuses that the bombs got."""
    endless_bytes: int = 0
    """The size of acknowledged requests with traces that never end."""
    hostile: int = 0
    """Acknowledged agents with hostile texts."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Background:
        work: list[Callable[[], None]] = [self._endless, self._hostile]
        work += [self._bombs] * BOMBERS
        self._threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _endless(self) -> None:
        client = GrpcClient(self.ports["grpc"])
        for number in count():
            if self._stopping.wait(ENDLESS_S):
                break
            body = endless(number)
            self.endless_bytes += len(body) * self._send(client, body)
        client.close()

    def _hostile(self) -> None:
        client = GrpcClient(self.ports["grpc"])
        for number, text in enumerate(cycle(HOSTILE)):
            if self._stopping.wait(1.0):
                break
            self.hostile += self._send(client, hostile(number, text))
        client.close()

    def _bombs(self) -> None:
        for bomb in cycle(BOMBS):
            if self._stopping.wait(0.1):
                break
            try:
                self.answers.append(bomb.send(self.ports).status)
            except (OSError, AssertionError) as error:  # no answer, or no complete one
                self.answers.append(type(error).__name__)

    def _send(self, client: GrpcClient, body: bytes) -> bool:
        """Whether it was acknowledged."""
        try:
            client.send(body)
        except (RefusedError, UnansweredError, UnreachableError):
            return False
        return True


def endless(number: int) -> bytes:
    """Large spans of traces whose agent never comes."""
    return request(
        *(
            span(
                f"{number}-{one}",
                "chat",
                {"gen_ai.operation.name": "chat", "text": f"{number}-{one} " * (TEXT_BYTES // 8)},
                trace=f"endless-{number}-{one % 4}",
                parent="missing",
            ).proto
            for one in range(ENDLESS_SPANS)
        )
    )


def hostile(number: int, text: str) -> bytes:
    """An agent whose messages are one of the texts."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "hostile",
        "gen_ai.input.messages": text,
        "gen_ai.output.messages": text,
    }
    return request(span("agent", "invoke_agent hostile", attributes, trace=f"h-{number}").proto)


def request(*spans: SpanProto) -> bytes:
    created = ExportTraceServiceRequest()
    created.resource_spans.add().scope_spans.add().spans.extend(spans)
    return created.SerializeToString()


def broken(folder: Path, prefix: Prefix, *mistakes: str) -> list[str]:
    """Every broken guarantee of a collector that runs under a limit."""
    collector = RestartedCollector(folder, prefix=prefix, assembly=ASSEMBLY)
    try:
        collector.start(*mistakes)
    except AssertionError as error:
        return [str(error)]
    try:
        with Background(collector.ports) as background:
            offered = offer(f"127.0.0.1:{collector.ports['grpc']}", SPANS_PER_S / SPANS, LOAD_S)
            until(
                lambda: background.endless_bytes > ENDLESS_BYTES or collector.process.poll(),
                FILLED_S,
            )
        if collector.process.poll() is not None:
            return [f"the process ended with {collector.process.returncode}"]
        expected = offered.acked * INVOCATIONS + background.hostile
        until(lambda: collector.value(READ) >= expected, DRAIN_S)
        return list(breaches(collector, offered, background, expected))
    finally:
        status = collector.stop()
        print(f"exit status {status}")


def breaches(
    collector: RestartedCollector, offered: Offered, background: Background, expected: int
) -> Iterator[str]:
    """The broken guarantees of a collector that is still running."""
    read, refused = (
        collector.value(READ),
        collector.value("pathgauge_requests_without_memory_total"),
    )
    print(
        f"acknowledged {offered.acked} requests, refused {offered.refused}, of all senders"
        f" {refused:g} without memory; {background.hostile} hostile agents; bombs"
        f" {Counter(background.answers).most_common()}"
    )
    if read < expected:
        yield f"{read:g} invocations were read, {expected} were acknowledged"
    if offered.without_delay:
        yield f"{len(offered.without_delay)} answers without a delay: {offered.without_delay[0]}"
    if not offered.acked or not background.hostile:
        yield "nothing was acknowledged"
    if not until(lambda: collector.get("/readyz")[0] == 200):
        yield f"still not ready: {collector.get('/readyz')[1]}"
    yield from (str(line) for line in collector.log() if line["level"] == "error")


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_collector_with_little_memory_refuses_what_does_not_fit_and_loses_nothing(
    limit: Limit, tmp_path: Path
) -> None:
    with limit() as prefix:
        assert broken(tmp_path, prefix) == []


@pytest.mark.long
@pytest.mark.parametrize("mistake", [(), ("forget_the_memory_limit",)], ids=["", "unknown"])
@pytest.mark.parametrize("limit", LEAST.values(), ids=LEAST)
def test_the_lowest_limits_bring_to_light_that_the_limit_is_not_known(
    limit: Limit, mistake: tuple[str, ...], tmp_path: Path
) -> None:
    with limit() as prefix:
        assert bool(broken(tmp_path, prefix, *mistake)) == bool(mistake)

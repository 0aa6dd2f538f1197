"""The service in a process that has nearly used up its memory, and processes under limits."""

from __future__ import annotations

import asyncio
import http.client
import json
import mmap
import platform
import resource
import subprocess
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from pathgauge.collector import config
from pathgauge.collector.receivers.grpc import TRACE_SERVICE
from pathgauge.collector.receivers.memory_guard import MemoryUse
from pathgauge.collector.service.memory.saving import STACK_BYTES
from pathgauge.collector.service.service import Service
from support.limited import Prefix, memory_cgroup, small_address_space
from support.running import FREE_PORTS, PATHGAUGE, PATIENCE_S, Collector, until
from support.turns import otlp, script, turn

MiB = 1 << 20
LEFT = 900 * MiB
"""Bytes that this process may still map."""
DEFAULT_STACK_BYTES = 8 * MiB
ARENA_BYTES = 64 * MiB
"""What the C library reserves for a thread that allocates memory."""
BOUNDS = {
    "ingest": "queue of the pipeline",
    "open_traces": "assembly.max_open_bytes",
    "conversations": "open conversations",
}
"""The names of bounds in the log, by their names in the metrics."""
LOWERED = "bounds are lower than by default, because of the memory limit"


@pytest.fixture
def limit() -> Iterator[int]:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MemoryUse()("data") + LEFT
    resource.setrlimit(resource.RLIMIT_DATA, (limit, before[1]))
    yield limit
    resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest_asyncio.fixture(name="service")
async def _service(tmp_path: Path, limit: int) -> AsyncIterator[Service]:
    path = tmp_path / "pathgauge.yaml"
    path.write_text(json.dumps({**FREE_PORTS, "assembly": {"settle": 0, "idle": 0}}))
    service = Service(config.load(path), path)
    await service.start()
    yield service
    await service.stop()


async def ask(service: Service, server: str, method: str, page: str) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", service.ports[server], timeout=PATIENCE_S
        )
        headers = {"Content-Type": "application/x-protobuf"}
        connection.request(method, page, otlp(turn(script(""))), headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        connection.close()
        return answer.status, text

    return await asyncio.to_thread(ask)


async def call(service: Service) -> grpc.StatusCode:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{service.ports['grpc']}") as channel:
        export: Any = channel.unary_unary(f"/{TRACE_SERVICE}/Export")
        try:
            await export(otlp(turn(script(""))))
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


async def test_near_the_limit_the_service_is_not_ready_and_refuses_requests(
    service: Service, limit: int
) -> None:
    assert (await ask(service, "http", "POST", "/v1/traces"))[0] == 200
    left = limit - MemoryUse()("data")
    with mmap.mmap(-1, left - 100 * MiB, mmap.MAP_PRIVATE):
        assert (await ask(service, "http", "POST", "/v1/traces"))[0] == 429
        assert await call(service) == grpc.StatusCode.UNAVAILABLE
        assert await ask(service, "metrics", "GET", "/readyz") == (
            503,
            "the memory limit is near: senders are told to retry\n",
        )
        assert (await ask(service, "metrics", "GET", "/healthz"))[0] == 200
        page = (await ask(service, "metrics", "GET", "/metrics"))[1]
        assert "pathgauge_requests_without_memory_total 2.0" in page.splitlines()
    assert (await ask(service, "http", "POST", "/v1/traces"))[0] == 200
    assert await call(service) == grpc.StatusCode.OK
    assert await ask(service, "metrics", "GET", "/readyz") == (200, "ready\n")


def mappings(collector: Collector) -> list[tuple[str, int]]:
    """Access and size of all parts of the address space, in the order of their addresses."""
    found = []
    for line in Path(f"/proc/{collector.process.pid}/maps").read_text().splitlines():
        addresses, access, *_ = line.split()
        start, _, end = addresses.partition("-")
        found.append((access, int(end, 16) - int(start, 16)))
    return found


def has_stacks_of(stack: int, mapped: list[tuple[str, int]]) -> bool:
    """Whether threads have stacks of this size. Each begins after a page that protects it. Since
    glibc 2.42 this page is part of the stack, and stacks side by side are one part.
    """
    guard = ("---p", mmap.PAGESIZE)
    if any(before == guard and size == stack for before, (_, size) in pairwise(mapped)):
        return True
    return any(access == "rw-p" and size % (stack + mmap.PAGESIZE) == 0 for access, size in mapped)


def serve(tmp_path: Path, prefix: Prefix, **sections: Any) -> tuple[int, str]:
    """Exit status and messages of a collector that does not start."""
    path = tmp_path / "pathgauge.yaml"
    path.write_text(json.dumps({**FREE_PORTS, **sections}))
    done = subprocess.run(
        [*prefix, PATHGAUGE, "serve", "--config", path],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.slow
def test_a_collector_that_would_not_fit_does_not_start(tmp_path: Path) -> None:
    status, text = serve(tmp_path, small_address_space(220 * MiB))
    assert status == 2
    assert text.startswith("pathgauge: the memory limit (ulimit -v) is 220MiB, expected at least ")
    assembly = {"max_open_bytes": "500MiB"}
    status, text = serve(tmp_path, small_address_space(600 * MiB), assembly=assembly)
    assert status == 2
    assert "assembly.max_open_bytes: found 500MiB, expected at most " in text
    assert text.endswith(": the memory limit (ulimit -v) is 600MiB\n")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.slow
def test_a_collector_with_little_address_space_maps_little_and_says_what_it_lowers(
    tmp_path: Path,
) -> None:
    with Collector(tmp_path, small_address_space(450 * MiB), store={}) as collector:
        assert collector.post("/v1/traces", otlp(turn(script("", "lookup"))))[0] == 200
        assert until(lambda: collector.value("pathgauge_invocations_scored_total") == 1)
        [line] = collector.events(LOWERED)
        assert (line["limit"], line["source"]) == ("450MiB", "ulimit -v")
        capacities = collector.series("pathgauge_queue_capacity", "queue")
        for name, key in BOUNDS.items():
            assert line[key] == f"{capacities[name,] // MiB:.0f}MiB"
        mapped = mappings(collector)
        assert has_stacks_of(STACK_BYTES, mapped)
        assert not has_stacks_of(DEFAULT_STACK_BYTES, mapped)
        assert max(size for access, size in mapped if access == "---p") < ARENA_BYTES // 2


@pytest.mark.slow
def test_a_collector_in_a_small_cgroup_says_what_it_lowers(tmp_path: Path) -> None:
    with memory_cgroup(400 * MiB) as group:
        with Collector(tmp_path, group.prefix, store={}) as collector:
            [line] = collector.events(LOWERED)
            assert collector.post("/v1/traces", otlp(turn(script("", "lookup"))))[0] == 200
            assert until(lambda: collector.value("pathgauge_invocations_scored_total") == 1)
        assert (line["limit"], line["source"][:6]) == ("400MiB", "cgroup")

"""What a backfill finds is what a collector found that scored the same spans as they came.

BACKFILL_TRACES=100000 is the long form (`make backfill-equals`), for Jaeger and Tempo.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.backfilled import RESULTS, command, configured, newest_results, rows
from support.past import CRITERIA, Archive, archive
from support.running import Collector, until
from support.trace_servers import jaeger, tempo, trace_server

pytestmark = pytest.mark.slow

TRACES = int(os.environ.get("BACKFILL_TRACES", "600"))
SECONDS = max(3600.0, TRACES / 5)
PATIENCE_S = 120 + TRACES / 50
SENDERS = 4
OF_REQUEST = 20
ASSEMBLY: Mapping[str, Any] = {"settle": "2s", "idle": "3s", "max_age": "10m", "late_ttl": "10m"}
SETTINGS: Mapping[str, Any] = {
    "assembly": ASSEMBLY,
    "conversations": {"idle": "6h"},
    "evidence": {"keep": "none"},
}


@pytest.fixture(scope="module")
def past() -> Archive:
    return archive(TRACES, SECONDS)


@pytest.fixture(scope="module")
def live(past: Archive, tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, ...], Any]:
    """The results of a collector that got every trace as OTLP, in the order of time."""
    folder = tmp_path_factory.mktemp("live")
    configured(folder)
    settings = {**SETTINGS, "references": ["references.yaml"], "criteria": CRITERIA}
    store = {"path": "past", "max_backlog_age": "1h"}
    with Collector(folder, **settings, store=store) as collector:

        def send(body: bytes) -> None:
            assert until(lambda: collector.post("/v1/traces", body)[0] == 200, PATIENCE_S)

        with ThreadPoolExecutor(SENDERS) as senders:
            list(senders.map(send, requests(past)))
        assert until(lambda: not collector.value("pathgauge_traces_open"), PATIENCE_S)
        assert until(lambda: len(rows(folder / "past", RESULTS)) >= len(past.traces), PATIENCE_S)
    return newest_results(folder / "past")


def requests(past: Archive) -> Iterator[bytes]:
    """Some traces in each: bodies in protobuf can be joined."""
    bodies = [one.body for one in past.traces]
    for first in range(0, len(bodies), OF_REQUEST):
        yield b"".join(bodies[first : first + OF_REQUEST])


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
def test_a_backfill_equals_live_scoring(
    kind: str, past: Archive, live: Mapping[tuple[str, ...], Any], tmp_path: Path
) -> None:
    configured(tmp_path, **SETTINGS)
    servers = {"jaeger": jaeger, "tempo": tempo}
    with trace_server(servers[kind](past)) as server:
        began = time.monotonic()
        done = command(tmp_path, f"{kind}://127.0.0.1:{server.port}", SECONDS + 60)
        seconds = time.monotonic() - began
    assert (done.returncode, done.stderr) == (0, "")
    print(f"{kind}: {TRACES} traces in {seconds:.0f} s, {TRACES / seconds:.0f} traces/s")
    print(done.stdout)
    found = newest_results(tmp_path / "past")
    assert len(found) == len(live) == len(past.traces)
    assert [(key, found[key], live[key]) for key in found if found[key] != live.get(key)] == []

"""A low limit on open files: fewer connections are allowed, and the pages answer whatever happens.

Limits cannot be raised again, so each case has a process of its own.
"""

from __future__ import annotations

import http.client
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.config import Config
from pathgauge.collector.service.connections import wanted_connections, with_connections
from pathgauge.collector.service.file_limit import fit_connections
from support.limited import few_files
from support.running import Collector, until
from support.turns import otlp, script, turn

FEW_FILES = 128
PEERS = 40
PER_PEER = 8
SPARE = 8
ANSWER_S = 2.0
"""Probes of Kubernetes wait 1 s by default; the machine may be busy here."""
PAUSE_S = 0.15
"""Longer than a server without a file waits until it tries again."""
LOWERED = "fewer connections are allowed, because of the limit on open files"

FIT = """
import resource, sys
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.service.file_limit import fit_connections, raise_file_limit
files = resource.RLIMIT_NOFILE
soft, hard = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(files, (soft, hard))
try:
    fitted = fit_connections({"grpc": 512, "http": 512, "metrics": 512})
except ConfigError as error:
    print(error)
else:
    raise_file_limit(sum(fitted.values()))
    print(*fitted.values(), *resource.getrlimit(files))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        pytest.param(64, 4096, "512 512 512 1792 4096", id="raised to what is needed"),
        pytest.param(64, 1792, "512 512 512 1792 1792", id="just enough"),
        pytest.param(2000, 4096, "512 512 512 2000 4096", id="more than enough"),
        pytest.param(64, 1791, "511 511 511 1789 1791", id="one is missing"),
        pytest.param(1024, 1024, "256 256 256 1024 1024", id="a common limit"),
        pytest.param(64, 256, "42 42 42 256 256", id="few"),
        pytest.param(64, 96, "10 10 10 96 96", id="the lowest limit"),
        pytest.param(
            64, 95, "open files (ulimit -Hn): found 95, expected at least 96", id="too few"
        ),
    ],
)
def test_connections_fit_into_the_limit_on_open_files(soft: int, hard: int, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == expected


def test_a_low_limit_allows_no_more_connections_than_are_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (128, 128))
    wanted = {"grpc": 8, "http": 4, "metrics": 2}
    assert fit_connections(wanted) == wanted


@pytest.mark.parametrize(
    ("protocols", "fitted", "expected"),
    [
        ({}, {"grpc": 10, "http": 20, "metrics": 20}, (10, (20, 10))),
        ({}, {"grpc": 512, "http": 512, "metrics": 512}, (512, (512, 64))),
        ({"grpc": False}, {"http": 1, "metrics": 1}, (None, (1, 1))),
        ({"http": False}, {"grpc": 1, "metrics": 1}, (1, None)),
        (
            {"http": {"max_connections_per_peer": 3}},
            {"grpc": 9, "http": 9, "metrics": 9},
            (9, (9, 3)),
        ),
    ],
)
def test_one_address_gets_at_most_half_of_the_connections_that_are_left(
    protocols: dict[str, Any],
    fitted: dict[str, int],
    expected: tuple[int | None, tuple[int, int] | None],
) -> None:
    config = Config.model_validate({"receivers": {"otlp": {"protocols": protocols}}})
    assert wanted_connections(config).keys() == fitted.keys()
    found = with_connections(config, fitted).receivers.otlp.protocols
    assert (
        found.grpc and found.grpc.max_connections,
        found.http and (found.http.max_connections, found.http.max_connections_per_peer),
    ) == expected


class Flood:
    """Connections from many addresses to all ports, as many as are accepted."""

    def __init__(self, ports: dict[str, int], peers: int = PEERS) -> None:
        self._ports = ports
        self._peers = peers
        self._open = ExitStack()

    def __enter__(self) -> Flood:
        for peer in range(self._peers):
            for port in self._ports.values():
                for _ in range(PER_PEER):
                    self._connect(port, f"127.0.1.{peer}")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _connect(self, port: int, peer: str) -> None:
        self._open.enter_context(
            socket.create_connection(("127.0.0.1", port), 5, source_address=(peer, 0))
        )


def seconds(collector: Collector, path: str) -> float:
    """How long a page takes to answer."""
    began = time.monotonic()
    assert collector.get(path)[0] == 200
    return time.monotonic() - began


def probe(collector: Collector, kept: ExitStack) -> float:
    """How long `/readyz` takes to answer, to a client that keeps its connection open."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", collector.ports["metrics"], timeout=5)
    kept.callback(connection.close)
    connection.request("GET", "/readyz")
    assert connection.getresponse().read() == b"ready\n"
    return time.monotonic() - began


def files(collector: Collector) -> list[int]:
    return [int(file.name) for file in Path(f"/proc/{collector.process.pid}/fd").iterdir()]


def is_scored(collector: Collector, invocations: int) -> bool:
    """Whether another invocation is accepted and scored."""
    assert collector.post("/v1/traces", otlp(turn(script("", "lookup"))))[0] == 200
    return until(lambda: collector.value("pathgauge_invocations_scored_total") == invocations)


@pytest.mark.slow
def test_a_flood_of_connections_leaves_files_for_probes_and_for_the_store(tmp_path: Path) -> None:
    with Collector(tmp_path, few_files(FEW_FILES), store={}) as collector:
        with Flood({name: collector.ports[name] for name in ("grpc", "http")}):
            pages = ("/readyz", "/healthz", "/metrics")
            assert max(seconds(collector, page) for page in pages) < ANSWER_S
            assert len(files(collector)) < FEW_FILES - SPARE
        assert is_scored(collector, 1)
        [warning] = [line for line in collector.log() if line["level"] == "warning"][:1]
        assert (warning["event"], warning["limit"]) == (LOWERED, FEW_FILES)
        assert [line for line in collector.log() if line["level"] == "error"] == []


@pytest.mark.slow
def test_probes_are_answered_while_no_file_descriptor_is_left(tmp_path: Path) -> None:
    with Collector(tmp_path, store={}) as collector:
        collector.get("/readyz")
        until(lambda: len(files(collector)) == max(files(collector)) + 1)
        _, hard = resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE)
        used = max(files(collector)) + 1
        resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE, (used, hard))
        with Flood({"http": collector.ports["http"]}, peers=4):
            with ExitStack() as kept:
                for _ in range(20):
                    assert probe(collector, kept) < ANSWER_S
                    time.sleep(PAUSE_S)  # others would take a file that is not kept
            assert seconds(collector, "/healthz") < ANSWER_S
            assert seconds(collector, "/metrics") < ANSWER_S
        resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert is_scored(collector, 1)
        [warning] = collector.events("no file descriptor is left for a connection")[:1]
        assert warning["level"] == "warning"

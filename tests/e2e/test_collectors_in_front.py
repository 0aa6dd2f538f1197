"""OTLP collectors of other make between the SDK and the running service: Rotel, and the
OpenTelemetry Collector where it is installed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from support.monitoring import ONLY_MAKE_E2E
from support.ports import free_port
from support.repository import DEPLOY
from support.running import PATIENCE_S, Collector, until
from support.turns import script, turn

pytestmark = [pytest.mark.e2e, ONLY_MAKE_E2E]

CONFIGS = DEPLOY / "otel-collector"
OTELCOL = shutil.which("otelcol-contrib") or shutil.which("otelcol")
needs_otelcol = pytest.mark.skipif(
    OTELCOL is None, reason="neither `otelcol-contrib` nor `otelcol` is on PATH"
)
ROTEL = find_spec("rotel")
TURNS = 20


SETTLE = {"settle": "3s", "idle": "6s"}
"""Collectors in front may hold back a span for a while."""


def free_ports(count: int) -> list[int]:
    return [free_port() for _ in range(count)]


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def started(
    command: Sequence[str | Path], log: Path, ports: Sequence[int], **environment: str
) -> Iterator[None]:
    """A program that listens on `ports`."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, **environment}
        )
    try:
        assert until(lambda: all(map(listens, ports)) or process.poll() is not None), (
            log.read_text()
        )
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def rotel(folder: Path, protocol: str, target: int, ports: Sequence[int]) -> Any:
    assert ROTEL
    assert ROTEL.origin
    options = {
        "--otlp-grpc-endpoint": f"127.0.0.1:{ports[0]}",
        "--otlp-http-endpoint": f"127.0.0.1:{ports[1]}",
        "--exporter": "otlp",
        "--otlp-exporter-endpoint": f"http://127.0.0.1:{target}",
        "--otlp-exporter-protocol": protocol,
        "--batch-timeout": "200ms",
    }
    agent = Path(ROTEL.origin).with_name("rotel-agent")
    return started(
        [agent, "start", *chain.from_iterable(options.items())], folder / "rotel.log", ports
    )


def otelcol(
    folder: Path, config: Mapping[str, Any], ports: Sequence[int], **environment: str
) -> Any:
    assert OTELCOL
    file = folder / "otelcol.yaml"
    file.write_text(yaml.safe_dump(config))
    return started([OTELCOL, "--config", file], folder / "otelcol.log", ports, **environment)


def shipped(name: str, ports: Sequence[int]) -> dict[str, Any]:
    """A shipped configuration, which listens on these ports of the loopback."""
    config: dict[str, Any] = yaml.safe_load((CONFIGS / name).read_text())
    protocols = config["receivers"]["otlp"]["protocols"]
    protocols["grpc"]["endpoint"], protocols["http"]["endpoint"] = (
        f"127.0.0.1:{port}" for port in ports[:2]
    )
    config["extensions"]["health_check"]["endpoint"] = f"127.0.0.1:{ports[2]}"
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    return config


def export(ports: Sequence[int], protocol: str, turns: Sequence[Sequence[ReadableSpan]]) -> None:
    """Send each span by itself, as services that end their spans at different times do."""
    sender: SpanExporter
    if protocol == "grpc":
        sender = GrpcExporter(endpoint=f"http://127.0.0.1:{ports[0]}", insecure=True)
    else:
        sender = HttpExporter(endpoint=f"http://127.0.0.1:{ports[1]}/v1/traces")
    try:
        for spans in turns:
            for span in spans:
                assert sender.export([span]) is SpanExportResult.SUCCESS
    finally:
        sender.shutdown()


def agents(count: int = TURNS) -> list[Sequence[ReadableSpan]]:
    return [
        turn(script("", "lookup", "refund"), "support", "1.0", f"conversation {number}")
        for number in range(count)
    ]


def accepted(service: Collector) -> float:
    return service.value("pathgauge_receiver_accepted_spans_total")


def completed(*services: Collector) -> dict[tuple[str, ...], float]:
    """Completed traces by what completed them, over these services."""
    found: dict[tuple[str, ...], float] = {}
    for service in services:
        for reason, count in service.series("pathgauge_traces_completed_total", "reason").items():
            found[reason] = found.get(reason, 0) + count
    return found


@pytest.mark.skipif(ROTEL is None, reason="there is no rotel for this system")
@pytest.mark.parametrize(
    ("received", "sent"), [("grpc", "grpc"), ("http", "http"), ("grpc", "http"), ("http", "grpc")]
)
def test_rotel_brings_every_span_over_both_protocols(
    received: str, sent: str, tmp_path: Path
) -> None:
    ports, turns = free_ports(2), agents()
    with (
        Collector(tmp_path, assembly=SETTLE) as service,
        rotel(tmp_path, sent, service.ports[sent], ports),
    ):
        export(ports, received, turns)
        assert until(lambda: service.value("pathgauge_invocations_total") == TURNS)
        assert service.value("pathgauge_receiver_accepted_spans_total", transport=sent) == sum(
            map(len, turns)
        )
        assert completed(service) == {("root_ended",): TURNS}


@needs_otelcol
@pytest.mark.parametrize("name", ["fan-out.yaml", "replicas.yaml"])
def test_the_collector_accepts_the_shipped_configuration(name: str) -> None:
    assert OTELCOL
    checked = subprocess.run(
        [OTELCOL, "validate", "--config", CONFIGS / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@needs_otelcol
def test_the_fan_out_brings_every_span_to_both_and_the_token_to_pathgauge(tmp_path: Path) -> None:
    for name in ("scored", "kept"):
        (tmp_path / name).mkdir()
    (tmp_path / "scored" / "token").write_text("a-token-for-the-fan-out")
    ports, turns = free_ports(3), agents()
    with (
        Collector(
            tmp_path / "scored",
            assembly=SETTLE,
            auth={"tenants": {"team": {"token_file": "token"}}},
        ) as scored,
        Collector(tmp_path / "kept", assembly=SETTLE) as kept,
        otelcol(
            tmp_path,
            shipped("fan-out.yaml", ports),
            ports,
            PATHGAUGE_ENDPOINT=f"127.0.0.1:{scored.ports['grpc']}",
            TRACING_ENDPOINT=f"127.0.0.1:{kept.ports['grpc']}",
            PATHGAUGE_TOKEN="a-token-for-the-fan-out",
        ),
    ):
        export(ports, "http", turns)
        for service in (scored, kept):
            assert until(
                lambda of=service: accepted(of) == sum(map(len, turns))  # type: ignore[misc]
            )
            assert until(lambda of=service: completed(of) == {("root_ended",): TURNS})  # type: ignore[misc]


@needs_otelcol
def test_the_fan_out_loses_no_invocation_while_pathgauge_is_killed(tmp_path: Path) -> None:
    for name in ("scored", "kept"):
        (tmp_path / name).mkdir()
    ports, turns, receiver = free_ports(3), agents(10 * TURNS), free_port()
    grpc = {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{receiver}"}}}
    own = {"receivers": {"otlp": grpc}, "assembly": SETTLE, "store": {}}
    config = shipped("fan-out.yaml", ports)
    config["exporters"]["otlp_grpc/pathgauge"]["retry_on_failure"]["initial_interval"] = "200ms"
    with (
        Collector(tmp_path / "kept", assembly=SETTLE) as kept,
        otelcol(
            tmp_path,
            config,
            ports,
            PATHGAUGE_ENDPOINT=f"127.0.0.1:{receiver}",
            TRACING_ENDPOINT=f"127.0.0.1:{kept.ports['grpc']}",
        ),
    ):
        for part in range(4):
            with Collector(tmp_path / "scored", **own) as scored:
                before = accepted(scored)
                export(ports, "grpc", turns[part::4])
                if part < 3:
                    assert until(lambda of=scored, n=before: accepted(of) > n)  # type: ignore[misc]
                    scored.stop(SIGKILL)
                    continue
                assert until(lambda: scored.value("pathgauge_invocations_total") == len(turns))
        assert until(lambda: kept.value("pathgauge_invocations_total") == len(turns))


@needs_otelcol
def test_replicas_get_whole_traces_and_share_them(tmp_path: Path) -> None:
    ports, turns = free_ports(3), agents(4 * TURNS)
    config = shipped("replicas.yaml", ports)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        Collector(tmp_path / "one", assembly=SETTLE) as one,
        Collector(tmp_path / "two", assembly=SETTLE) as two,
    ):
        addresses = [f"127.0.0.1:{service.ports['grpc']}" for service in (one, two)]
        config["exporters"]["load_balancing"]["resolver"] = {"static": {"hostnames": addresses}}
        with otelcol(tmp_path, config, ports):
            export(ports, "grpc", turns)
            assert until(lambda: sum(completed(one, two).values()) >= len(turns))
            assert completed(one, two) == {("root_ended",): len(turns)}
            assert all(sum(completed(service).values()) > len(turns) / 10 for service in (one, two))

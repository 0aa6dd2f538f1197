"""Events to a backend over TLS, with client certificates."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from pathgauge.collector import config
from pathgauge.collector.config.sinks import build_sinks
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import Match
from pathgauge.scorers.types import Invocation
from support.certificates import Authority
from support.guarded import UNKNOWN, A, Guarded, Port, running
from support.running import until
from support.sink_harness import ANSWER, NOW

EVALUATION = Evaluator((ANSWER,)).evaluate(
    Invocation("1" * 32, "2" * 16, "test", final_response="1"), Match(unmatched="no_scenario_id")
)
PROTOCOLS: list[tuple[Port, str]] = [("grpc", "grpc"), ("http", "http/protobuf")]


async def exported(
    backend: Guarded, port: Port, protocol: str, **section: Any
) -> tuple[int, dict[tuple[str, ...], int]]:
    """Number of events that the backend accepted, and that were dropped, by reason."""
    file, telemetry = backend.folder / "exporting.yaml", InternalTelemetry()
    otlp = {
        "endpoint": f"https://localhost:{backend.port(port)}",
        "protocol": protocol,
        "timeout": "5s",
        **section,
    }
    file.write_text(yaml.safe_dump({"exporters": {"otlp": otlp}}))
    settings = config.load(file)
    sink = build_sinks(settings, telemetry)["otlp"]
    sink.publish(EVALUATION, NOW)
    await asyncio.to_thread(sink.close)
    assert sum(batch.own_events for batch in backend.batches) == telemetry.events_exported.total()
    return telemetry.events_exported.total(), dict(telemetry.events_dropped.items())


@pytest.mark.parametrize(("port", "protocol"), PROTOCOLS)
async def test_headers_carry_credentials_and_the_ca_authenticates_the_backend(
    port: Port, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asynccontextmanager(running)(Guarded(tmp_path, mutual=False)) as backend:
        (tmp_path / "ca.pem").write_bytes(backend.authority.certificate)
        (tmp_path / "strange.pem").write_bytes(backend.strange.certificate)
        (tmp_path / "netrc").write_text("machine localhost login me password of-mine")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "strange.pem"))
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        tls = {"ca_file": "ca.pem"}
        assert await exported(
            backend, port, protocol, tls=tls, headers={"Authorization": f"Bearer {A}"}
        ) == (1, {})
        backend.batches.clear()
        assert await exported(
            backend, port, protocol, tls=tls, headers={"Authorization": f"Bearer {UNKNOWN}"}
        ) == (0, {("failed",): 1})


@pytest.mark.parametrize(("port", "protocol"), PROTOCOLS)
async def test_the_client_certificate_is_sent_to_the_backend(
    port: Port, protocol: str, tmp_path: Path
) -> None:
    async with asynccontextmanager(running)(Guarded(tmp_path, mutual=True)) as backend:
        client = backend.authority.client("agents.team-a.internal")
        assert client.certificate is not None
        assert client.key is not None
        for name, content in (
            ("ca.pem", client.trusted),
            ("own.pem", client.certificate),
            ("own.key", client.key),
        ):
            (tmp_path / name).write_bytes(content)
        own = {"ca_file": "ca.pem", "cert_file": "own.pem", "key_file": "own.key"}
        assert await exported(backend, port, protocol, tls=own) == (1, {})


@pytest.mark.slow
@pytest.mark.parametrize(("port", "protocol"), PROTOCOLS)
async def test_rotated_certificates_are_used_and_unusable_ones_change_nothing(
    port: Port, protocol: str, tmp_path: Path
) -> None:
    async with asynccontextmanager(running)(Guarded(tmp_path, mutual=True)) as backend:
        telemetry = InternalTelemetry()

        def write(authority: Authority) -> None:
            client = authority.client("agents.team-a.internal")
            (tmp_path / "own.pem").write_bytes(client.certificate or b"")
            (tmp_path / "own.key").write_bytes(client.key or b"")

        write(backend.strange)
        (tmp_path / "ca.pem").write_bytes(backend.authority.certificate)
        otlp = {
            "endpoint": f"https://localhost:{backend.port(port)}",
            "protocol": protocol,
            "timeout": "2s",
            "tls": {"ca_file": "ca.pem", "cert_file": "own.pem", "key_file": "own.key"},
        }
        (tmp_path / "exporting.yaml").write_text(yaml.safe_dump({"exporters": {"otlp": otlp}}))
        sink = build_sinks(config.load(tmp_path / "exporting.yaml"), telemetry)["otlp"]

        async def publish() -> tuple[int, int]:
            before = telemetry.events_exported.total() + telemetry.events_dropped.total()
            sink.publish(EVALUATION, NOW)
            await asyncio.to_thread(
                until,
                lambda: (
                    telemetry.events_exported.total() + telemetry.events_dropped.total() > before
                ),
            )
            return telemetry.events_exported.total(), telemetry.events_dropped.total()

        assert await publish() == (0, 1)
        write(backend.authority)
        assert await publish() == (1, 1)
        (tmp_path / "own.key").write_bytes(b"")
        with capture_logs() as logged:
            assert await publish() == (2, 1)
            assert await publish() == (3, 1)
        [line] = [one for one in logged if one["log_level"] == "error"]
        assert line["event"] == "file cannot be used, its last valid content stays active"
        await asyncio.to_thread(sink.close)

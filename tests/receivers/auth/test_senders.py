"""The official OpenTelemetry exporters with credentials from environment variables, as in
docs/instrumenting.md.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from support.certificates import Client
from support.guarded import UNKNOWN, A, B, Guarded
from support.turns import script, turn

pytestmark = pytest.mark.asyncio(loop_scope="module")

EXPORTERS: dict[str, type[SpanExporter]] = {"grpc": GrpcSpanExporter, "http": HttpSpanExporter}


async def export(
    site: Guarded, protocol: str, monkeypatch: pytest.MonkeyPatch, **environment: str
) -> SpanExportResult:
    ca = site.folder / "ca.pem"
    ca.write_bytes(site.authority.certificate)
    port = site.port("grpc" if protocol == "grpc" else "http")
    found = {"ENDPOINT": f"https://localhost:{port}", "CERTIFICATE": str(ca), **environment}
    for bundle in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # they would take the place of our CA
        monkeypatch.delenv(bundle, raising=False)
    for name, value in found.items():
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    exporter = EXPORTERS[protocol]()
    try:
        return await asyncio.to_thread(exporter.export, turn(script("", "look_up")))
    finally:
        exporter.shutdown()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize(("token", "tenant"), [(A, "team-a"), (B, "team-b")])
async def test_a_token_in_the_headers(
    tokens: Guarded, protocol: str, token: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await export(tokens, protocol, monkeypatch, HEADERS=f"authorization=Bearer%20{token}")
    assert (result, tokens.tenants()) == (SpanExportResult.SUCCESS, [tenant])


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("headers", ["", f"authorization=Bearer%20{UNKNOWN}"], ids=["none", "bad"])
async def test_an_exporter_that_is_refused_gives_up_at_once(
    tokens: Guarded, protocol: str, headers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tokens.telemetry.requests.total()
    result = await export(tokens, protocol, monkeypatch, HEADERS=headers)
    assert (result, tokens.tenants(), tokens.telemetry.requests.total()) == (
        SpanExportResult.FAILURE,
        [],
        before + 1,
    )


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_a_client_certificate(
    mutual: Guarded, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write(mutual.authority.client("agents.team-b.internal"), mutual.folder)
    result = await export(mutual, protocol, monkeypatch, HEADERS="", **files)
    assert (result, mutual.tenants()) == (SpanExportResult.SUCCESS, ["team-b"])


def write(client: Client, folder: Path) -> dict[str, str]:
    assert client.certificate is not None
    assert client.key is not None
    (folder / "agent.pem").write_bytes(client.certificate)
    (folder / "agent.key").write_bytes(client.key)
    return {
        "CLIENT_CERTIFICATE": str(folder / "agent.pem"),
        "CLIENT_KEY": str(folder / "agent.key"),
    }

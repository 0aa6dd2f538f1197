"""Guarded servers for tests: the two receivers and the metrics page behind one configuration, and
clients that ask them.

Two tenants send, `team-a` and `team-b`; Prometheus reads. They show tokens, or certificates of
which the metrics page has a CA of its own.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import grpc
import yaml
from prometheus_client import CollectorRegistry

from pathgauge.collector import config
from pathgauge.collector.receivers.auth.access import load_access
from pathgauge.collector.receivers.grpc import LOGS_SERVICE, TRACE_SERVICE, GrpcReceiver
from pathgauge.collector.receivers.http import HttpReceiver
from pathgauge.collector.receivers.server.asgi_server import HttpServer
from pathgauge.collector.receivers.server.connections import Caps, Terms
from pathgauge.collector.service.web.app import create_app
from support.certificates import Authority, Client
from support.intake import Intake
from support.turns import otlp, script, turn

Port: TypeAlias = Literal["grpc", "http", "metrics"]

A, B, READER, UNKNOWN = (
    "token-of-team-a-0123",
    "token-of-team-b-0123",
    "token-of-prometheus-0123",
    "token-of-nobody-0123",
)
SPANS = otlp(turn(script("", "look_up")))
WORKLOAD = "spiffe://example.org/team-b"
OTLP_PATH = {"traces": "/v1/traces", "logs": "/v1/logs"}
OTLP_SERVICE = {"traces": TRACE_SERVICE, "logs": LOGS_SERVICE}


class Guarded(Intake):
    """The three servers behind one configuration, and clients of them."""

    def __init__(self, folder: Path, mutual: bool) -> None:
        super().__init__()
        self.folder = folder
        self.authority, self.of_metrics, self.strange = Authority(), Authority(), Authority()
        tls = self.authority.write_server(folder)
        otlp_tls = tls | (self.authority.write_ca(folder) if mutual else {})
        metrics_tls = tls | (self.of_metrics.write_ca(folder, "metrics-ca.pem") if mutual else {})
        for name, token in (("a", A), ("b", B), ("reader", READER)):
            (folder / name).write_text(token)
            (folder / name).chmod(0o600)
        names = {
            "team-a": {"client_names": ["agents.team-a.internal"]},
            "team-b": {"client_names": ["agents.team-b.internal", WORKLOAD]},
        }
        tokens = {"team-a": {"token_file": "a"}, "team-b": {"token_file": "b"}}
        written: dict[str, Any] = {
            "receivers": {
                "otlp": {
                    "protocols": {
                        protocol: {"endpoint": "0.0.0.0:0", "tls": otlp_tls}
                        for protocol in ("grpc", "http")
                    }
                }
            },
            "auth": {"tenants": names if mutual else tokens},
            "exporters": {
                "prometheus": {
                    "endpoint": "0.0.0.0:0",
                    "tls": metrics_tls,
                    "token_file": None if mutual else "reader",
                }
            },
        }
        file = folder / "pathgauge.yaml"
        file.write_text(yaml.safe_dump(written))
        access = self.access = load_access(config.load(file, {}))
        tls_of = access.tls
        self.servers: dict[Port, GrpcReceiver | HttpReceiver | HttpServer] = {
            "grpc": GrpcReceiver(
                "127.0.0.1:0",
                self.accept,
                self.telemetry,
                authenticate=access.authenticate,
                credentials=tls_of["grpc"].grpc_credentials(),
            ),
            "http": HttpReceiver(
                "127.0.0.1:0",
                self.accept,
                self.telemetry,
                authenticate=access.authenticate,
                terms=Terms(Caps(), tls_of["http"].context),
            ),
            "metrics": HttpServer(
                create_app(CollectorRegistry(), readers=access.readers),
                "127.0.0.1:0",
                Terms(Caps(), tls_of["metrics"].context),
            ),
        }

    async def ask(
        self,
        port: Port,
        client: Client,
        token: str | None,
        path: str = "/metrics",
        signal: str = "traces",
    ) -> str:
        """What is answered: a status, or `no connection`."""
        if port == "grpc":
            return await self._export(client, token, OTLP_SERVICE[signal])
        body: bytes | None = None
        if port == "http":
            path, body = OTLP_PATH[signal], SPANS if signal == "traces" else b""
        return str((await asyncio.to_thread(self.request, port, path, body, client, token))[0])

    def request(
        self, port: Port, path: str, body: bytes | None, client: Client, token: str | None
    ) -> tuple[int | str, dict[str, str]]:
        connection = http.client.HTTPSConnection(
            "localhost", self.port(port), context=client.context(self.folder), timeout=10
        )
        headers = {"Content-Type": "application/x-protobuf"} | (
            {} if token is None else {"Authorization": f"Bearer {token}"}
        )
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            return response.status, dict(response.headers)
        except (ssl.SSLError, ConnectionError):
            return "no connection", {}
        finally:
            connection.close()

    async def _export(self, client: Client, token: str | None, service: str) -> str:
        metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        async with self.channel(client) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/{service}/Export"
            )
            try:
                await call(SPANS if service == TRACE_SERVICE else b"", metadata=metadata)
            except grpc.aio.AioRpcError as error:
                return (
                    "no connection"
                    if error.code() == grpc.StatusCode.UNAVAILABLE
                    else error.code().name
                )
            return "OK"

    def channel(self, client: Client) -> grpc.aio.Channel:
        return grpc.aio.secure_channel(f"localhost:{self.port('grpc')}", client.grpc_credentials())

    def port(self, port: Port) -> int:
        return self.servers[port].port

    def tenants(self) -> list[str]:
        """Of what was taken in since the last time."""
        found = [batch.origin.tenant for batch in self.batches]
        assert [span.tenant for batch in self.batches for span in batch.spans[:1]] == found
        self.batches.clear()
        return found


async def running(site: Guarded) -> AsyncIterator[Guarded]:
    """The same, while it is listening."""
    for server in site.servers.values():
        await server.start()
    yield site
    for server in site.servers.values():
        await server.stop(1)

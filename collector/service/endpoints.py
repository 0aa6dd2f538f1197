"""What listens: a configuration, credentials and the engine behind them come in; receivers, pages
and the control socket go out.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial

from pathgauge.collector.config import Config
from pathgauge.collector.config.plugins import installed_dialects
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Consumer
from pathgauge.collector.core.redaction import Redactor
from pathgauge.collector.receivers.auth.access import Access
from pathgauge.collector.receivers.auth.exposure import Server
from pathgauge.collector.receivers.export import ExportService, ReceiverLimits
from pathgauge.collector.receivers.grpc import GrpcReceiver
from pathgauge.collector.receivers.http import HttpReceiver
from pathgauge.collector.receivers.redact import RedactingConsumer
from pathgauge.collector.receivers.server.asgi_server import HttpServer
from pathgauge.collector.receivers.server.connections import Caps, Terms
from pathgauge.collector.service.canary import TENANT, Canary, Send, over_socket, within
from pathgauge.collector.service.control_socket import ControlServer
from pathgauge.collector.service.engine import Engine
from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.service.web.traces import traces_page


class Endpoints:
    """All servers of one collector, from `start` to `stop`."""

    def __init__(
        self,
        config: Config,
        access: Access,
        engine: Engine,
        telemetry: InternalTelemetry,
        *,
        canary: Canary | None,
        unready: Callable[[], list[str]],
    ) -> None:
        """`unready` gives the reasons for which the collector takes no spans."""
        self._config = config
        self._access = access
        self._telemetry = telemetry
        self._accept = _intake(config, engine.worker.accept, telemetry)
        self._authenticate = (
            canary.authenticate(access.authenticate) if canary is not None else access.authenticate
        )
        self._receivers = self._build_receivers()
        page = traces_page(engine.inspection.numbers, engine.inspection.waiting)
        pages = create_app(engine.registry, unready, access.readers, page)
        self._web = HttpServer(
            pages, str(config.exporters.prometheus.endpoint), self._terms("metrics", Caps())
        )
        self._control: ControlServer | None = None
        if config.store is not None:
            folder = config.folder / config.store.path
            self._control = ControlServer(
                folder, lambda selection: asyncio.wrap_future(engine.worker.purge(selection))
            )

    @property
    def ports(self) -> dict[str, int]:
        """The ports listened on: `grpc`, `http` and `metrics`; a protocol that is switched off is
        absent.
        """
        return {name: receiver.port for name, receiver in self._receivers.items()} | {
            "metrics": self._web.port
        }

    @property
    def max_connections(self) -> int:
        """How many connections there can be at a time."""
        protocols = self._config.receivers.otlp.protocols
        return (
            sum(
                protocol.max_connections
                for protocol in (protocols.grpc, protocols.http)
                if protocol
            )
            + Caps().total
        )

    async def start(self) -> None:
        """Listen everywhere. Raises OSError, naming the endpoint, when one cannot be had."""
        for server in (self._web, *self._receivers.values()):
            await server.start()
        if self._control is not None:
            await self._control.start()

    async def stop_receiving(self, grace: float) -> None:
        """Refuse new requests; those under way have `grace` seconds to finish."""
        await asyncio.gather(*(receiver.stop(grace) for receiver in self._receivers.values()))

    async def stop(self) -> None:
        """Close the rest: the pages were needed to the end."""
        if self._control is not None:
            await self._control.stop()
        await self._web.stop(1.0)

    def way_of_canaries(self, canary: Canary) -> Send:
        """How canaries get in: through a socket as everybody does, where one speaks plain text."""
        protocols = self._config.receivers.otlp.protocols
        export = ExportService(
            "grpc" if protocols.grpc else "http", self._accept, self._telemetry, ReceiverLimits()
        )
        return over_socket(protocols, self.ports, canary.token) or within(export, TENANT)

    def _build_receivers(self) -> dict[str, GrpcReceiver | HttpReceiver]:
        protocols = self._config.receivers.otlp.protocols
        receivers: dict[str, GrpcReceiver | HttpReceiver] = {}
        if protocols.grpc is not None:
            tls = self._access.tls.get("grpc")
            receivers["grpc"] = GrpcReceiver(
                str(protocols.grpc.endpoint),
                self._accept,
                self._telemetry,
                ReceiverLimits(max_request_bytes=protocols.grpc.max_request_bytes),
                authenticate=self._authenticate,
                credentials=tls.grpc_credentials() if tls else None,
                max_connections=protocols.grpc.max_connections,
            )
        if protocols.http is not None:
            receivers["http"] = HttpReceiver(
                str(protocols.http.endpoint),
                self._accept,
                self._telemetry,
                ReceiverLimits(max_request_bytes=protocols.http.max_request_bytes),
                authenticate=self._authenticate,
                terms=self._terms(
                    "http",
                    Caps(protocols.http.max_connections, protocols.http.max_connections_per_peer),
                ),
            )
        return receivers

    def _terms(self, server: Server, caps: Caps) -> Terms:
        tls = self._access.tls.get(server)
        return Terms(
            caps,
            tls.context if tls else None,
            partial(self._telemetry.connections_refused.add, server),
        )


def _intake(config: Config, accept: Consumer, telemetry: InternalTelemetry) -> Consumer:
    redaction = config.redaction
    if redaction is None:
        return accept
    salt = redaction.salt.encode() if redaction.salt is not None else secrets.token_bytes(32)
    redactor = Redactor(
        redaction.rules(),
        redaction.rules_of_tenants(),
        salt,
        installed_dialects(),
        config.scenario.keys,
    )
    return RedactingConsumer(accept, redactor, telemetry).accept

"""The servers of a collector: OTLP receivers, HTTP pages and the control socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import structlog
from starlette.concurrency import run_in_threadpool

from pathgauge.collector.api.app import routes as api_routes, routes_elsewhere
from pathgauge.collector.api.authorization import LOOPBACK, Authorization
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.config import Config, Grpc, Http
from pathgauge.collector.config.outgoing_certificates import outgoing_files
from pathgauge.collector.core.documents import SettingError
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Consumer
from pathgauge.collector.receivers.auth.access import Access
from pathgauge.collector.receivers.auth.certificate_expiry import CertificateExpiry
from pathgauge.collector.receivers.auth.exposure import SERVERS, Server, is_reachable
from pathgauge.collector.receivers.export import ExportService, ReceiverLimits
from pathgauge.collector.receivers.grpc import GrpcReceiver
from pathgauge.collector.receivers.http import HttpReceiver
from pathgauge.collector.receivers.redact import RedactingConsumer
from pathgauge.collector.receivers.server.asgi_server import HttpServer
from pathgauge.collector.receivers.server.connections import Caps, Terms
from pathgauge.collector.receivers.server.strict_http import InvalidRequest
from pathgauge.collector.service.canary import TENANT, Canary, Send, over_socket, within
from pathgauge.collector.service.cluster.roles import Role
from pathgauge.collector.service.components import build_redactor
from pathgauge.collector.service.connections import PAGES
from pathgauge.collector.service.control_socket import ControlServer
from pathgauge.collector.service.engine import Engine
from pathgauge.collector.service.feedback import AgreementRefresh, build_intake
from pathgauge.collector.service.process_limits import ProcessLimits
from pathgauge.collector.service.sources import sources_of
from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.service.web.scenarios import scenarios_page
from pathgauge.collector.service.web.traces import traces_page
from pathgauge.collector.store.queries.reading import Reading
from pathgauge.collector.web.app import routes as page_routes

_log = structlog.get_logger(__name__)

SPARE_FILES = 4
"""File descriptors that are kept for connections to the HTTP pages."""


class Endpoints:
    """All servers of one collector, from `start` to `stop`."""

    def __init__(
        self,
        limits: ProcessLimits,
        access: Access,
        engine: Engine,
        telemetry: InternalTelemetry,
        *,
        canary: Canary | None,
        unready: Callable[[], list[str]],
        unhealthy: Callable[[], list[str]],
        roles: frozenset[Role],
        database: Reading | None,
    ) -> None:
        """`unready` returns the reasons for which the collector accepts no spans, `unhealthy` those
        for which it never will. Only a gateway has receivers, only a gauge pages for people.
        `database` opens results that are not in a folder.
        """
        self._config = config = limits.config
        self._limits = _limits_of(limits.receivers, engine)
        self._access = access
        self._telemetry = telemetry
        self._accept = _with_redaction(config, engine.accept, telemetry)
        self._authenticate = access.authenticate
        if canary is not None:
            self._authenticate = canary.authenticate(access.authenticate)
        self._receivers = self._build_receivers() if "gateway" in roles else {}
        sources = sources_of(config, engine, unready, database)
        readable = Authorization(
            access.readers, access.authenticate if config.auth else None, _hosts(config)
        )
        engine.registry.register(CertificateExpiry(access.tls, outgoing_files(config)))
        queries = QueryThread(sources.is_busy)
        intake = build_intake(config, engine, telemetry)
        people = [
            *api_routes(sources, readable, queries, intake),
            *page_routes(
                sources,
                readable,
                queries,
                config.ui.trace_url,
                config.ui.dashboard_url,
                intake=intake,
            ),
        ]
        self._agreement = None
        if "gauge" in roles and config.feedback is not None and sources.reading is not None:
            self._agreement = AgreementRefresh(config, engine, sources, queries)
        pages = create_app(
            engine.registry,
            unready,
            access.readers,
            hosts=readable.hosts,
            unhealthy=unhealthy,
            inactive=engine.inactive,
            traces=traces_page(engine.usage, engine.explain_open_traces),
            scenarios=scenarios_page(
                sources.unknown,
                is_known=lambda: "gauge" in roles and not engine.inactive(),
            ),
            with_own_authorization=people if "gauge" in roles else routes_elsewhere(),
        )
        self._web = HttpServer(
            pages,
            str(config.exporters.prometheus.endpoint),
            self._page_terms(limits.connections[PAGES]),
        )
        self._control: ControlServer | None = None
        if config.store is not None and config.postgres is None:
            folder = config.folder / config.store.path
            self._control = ControlServer(
                folder, lambda selection: asyncio.wrap_future(engine.purge(selection))
            )

    @property
    def ports(self) -> dict[str, int]:
        """The open ports: `grpc`, `http` and `metrics`, without protocols that are switched off."""
        ports: dict[str, int] = {name: receiver.port for name, receiver in self._receivers.items()}
        return {**ports, "metrics": self._web.port}

    async def start(self) -> None:
        """Start all servers. Raises `SettingError` if an address is unavailable."""
        # Loads what pages need: it cannot be loaded when no file descriptor is left.
        await run_in_threadpool(lambda: None)
        servers: dict[Server, HttpServer | GrpcReceiver | HttpReceiver]
        servers = {"metrics": self._web, **self._receivers}
        for name, server in servers.items():
            try:
                await server.start()
            except OSError as error:
                text = error.strerror or str(error)
                raise SettingError((*SERVERS[name], "endpoint"), text, error.errno) from error
        if self._control is not None:
            await self._control.start()
        if self._agreement is not None:
            self._agreement.start()

    async def stop_receiving(self, grace: float) -> None:
        """Stop the receivers; active requests have `grace` seconds to finish."""
        await asyncio.gather(*(receiver.stop(grace) for receiver in self._receivers.values()))

    async def stop(self) -> None:
        """Stop the other servers. Metrics and health stay readable while the receivers drain."""
        if self._agreement is not None:
            await self._agreement.stop()
        if self._control is not None:
            await self._control.stop()
        await self._web.stop(1.0)

    def canary_sender(self, canary: Canary) -> Send:
        """Sends canaries over the network to a plain-text receiver. If all receivers need TLS, it
        calls the export service directly.
        """
        protocols = self._config.receivers.otlp.protocols
        export = ExportService(
            "grpc" if protocols.grpc else "http", self._accept, self._telemetry, self._limits
        )
        return over_socket(protocols, self.ports, canary.token) or within(export, TENANT)

    def _build_receivers(self) -> dict[Server, GrpcReceiver | HttpReceiver]:
        protocols = self._config.receivers.otlp.protocols
        receivers: dict[Server, GrpcReceiver | HttpReceiver] = {}
        if protocols.grpc is not None:
            receivers["grpc"] = self._grpc_receiver(protocols.grpc)
        if protocols.http is not None:
            receivers["http"] = self._http_receiver(protocols.http)
        return receivers

    def _grpc_receiver(self, section: Grpc) -> GrpcReceiver:
        tls = self._access.tls.get("grpc")
        return GrpcReceiver(
            str(section.endpoint),
            self._accept,
            self._telemetry,
            replace(self._limits, max_request_bytes=section.max_request_bytes),
            authenticate=self._authenticate,
            credentials=tls.grpc_credentials() if tls else None,
            max_connections=section.max_connections,
        )

    def _http_receiver(self, section: Http) -> HttpReceiver:
        caps = Caps(section.max_connections, section.max_connections_per_peer)
        return HttpReceiver(
            str(section.endpoint),
            self._accept,
            self._telemetry,
            replace(self._limits, max_request_bytes=section.max_request_bytes),
            authenticate=self._authenticate,
            terms=self._terms("http", caps),
        )

    def _page_terms(self, max_connections: int) -> Terms:
        """Pages must be readable when everything else is used up."""
        per_peer = max(1, min(Caps().per_peer, max_connections // 2))
        return replace(
            self._terms("metrics", Caps(max_connections, per_peer)), spare_files=SPARE_FILES
        )

    def _terms(self, server: Server, caps: Caps) -> Terms:
        tls = self._access.tls.get(server)
        return Terms(
            caps,
            tls.context if tls else None,
            partial(self._telemetry.connections_refused.add, server),
            partial(self._count_invalid, server),
        )

    def _count_invalid(self, server: Server, reason: InvalidRequest) -> None:
        self._telemetry.invalid_http_requests.add(server, reason)
        if reason == "http2":
            _explain_http2(server)


def _limits_of(limits: ReceiverLimits, engine: Engine) -> ReceiverLimits:
    """The limits of the receivers, without records that the engine cannot take."""
    largest = int(min(limits.records.max_record_bytes, engine.max_record_bytes))
    return replace(limits, records=replace(limits.records, max_record_bytes=largest))


def _hosts(config: Config) -> frozenset[str] | None:
    """The host names by which browsers reach the pages; `None`: unknown ones."""
    section = config.exporters.prometheus
    if not config.ui.hosts and is_reachable(section):
        return None
    own = str(section.endpoint).rpartition(":")[0]
    return LOOPBACK | {host.lower() for host in (own, *config.ui.hosts)}


@cache
def _explain_http2(server: Server) -> None:
    """Once for each server: senders repeat their mistake every few seconds."""
    _log.warning(
        "a client speaks gRPC to a port for HTTP/1.1; send OTLP over gRPC to the gRPC port",
        server=server,
    )


def _with_redaction(config: Config, accept: Consumer, telemetry: InternalTelemetry) -> Consumer:
    redactor = build_redactor(config)
    return accept if redactor is None else RedactingConsumer(accept, redactor, telemetry).accept

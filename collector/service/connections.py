"""The numbers of connections to each server, in and out of the configuration."""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.config import Config
from pathgauge.collector.receivers.server.connections import Caps

PAGES = "metrics"


def wanted_connections(config: Config) -> dict[str, int]:
    """The number of connections that each server should allow, by its name."""
    protocols = config.receivers.otlp.protocols
    servers = {"grpc": protocols.grpc, "http": protocols.http}
    configured = {name: server.max_connections for name, server in servers.items() if server}
    return {**configured, PAGES: Caps().total}


def with_connections(config: Config, connections: Mapping[str, int]) -> Config:
    """The configuration with these numbers of connections. One address may not have all of them."""
    protocols = config.receivers.otlp.protocols
    changes: dict[str, object] = {}
    if protocols.grpc is not None:
        changes["grpc"] = protocols.grpc.model_copy(update={"max_connections": connections["grpc"]})
    if (http := protocols.http) is not None and connections["http"] < http.max_connections:
        per_peer = min(http.max_connections_per_peer, max(1, connections["http"] // 2))
        changes["http"] = http.model_copy(
            update={
                "max_connections": connections["http"],
                "max_connections_per_peer": per_peer,
            }
        )
    otlp = config.receivers.otlp.model_copy(
        update={"protocols": protocols.model_copy(update=changes)}
    )
    receivers = config.receivers.model_copy(update={"otlp": otlp})
    return config.with_changes({"receivers": receivers})

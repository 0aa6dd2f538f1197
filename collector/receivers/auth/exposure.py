"""Finds servers that other machines can reach without credentials."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from pathgauge.collector.config import Config, Grpc, Http, Prometheus
from pathgauge.collector.core.documents import KeyPath, Problem, show_path

Server: TypeAlias = Literal["grpc", "http", "metrics"]

SERVERS: Mapping[Server, KeyPath] = {
    "grpc": ("receivers", "otlp", "protocols", "grpc"),
    "http": ("receivers", "otlp", "protocols", "http"),
    "metrics": ("exporters", "prometheus"),
}
"""The configuration key of each server."""


def servers(config: Config) -> dict[Server, Grpc | Http | Prometheus]:
    """The sections of the enabled servers."""
    protocols = config.receivers.otlp.protocols
    sections: dict[Server, Grpc | Http | Prometheus | None] = {
        "grpc": protocols.grpc,
        "http": protocols.http,
        "metrics": config.exporters.prometheus,
    }
    return {server: section for server, section in sections.items() if section is not None}


def exposures(config: Config) -> Iterator[Problem]:
    """Endpoints that must not be opened without `insecure_bind`."""
    for server, section in servers(config).items():
        if is_reachable(section) and not _authenticates(config, server):
            expected = "token_file" if server == "metrics" else "auth.tenants"
            yield config.problem(
                (*SERVERS[server], "endpoint"),
                f"found {section.endpoint}, which other machines can reach without credentials;"
                f" expected {expected} or tls.client_ca_file, or else insecure_bind: true",
            )


def warnings(config: Config) -> Iterator[str]:
    """Risks of servers that other machines can reach."""
    for server, section in servers(config).items():
        if not is_reachable(section):
            continue
        place = show_path(SERVERS[server])
        if not _authenticates(config, server):
            yield f"{place}: insecure_bind admits everybody who can reach {section.endpoint}"
        elif section.tls is None:
            yield (
                f"{place}: tokens for {section.endpoint} cross the network in plain text, unless"
                " TLS ends in front of it"
            )


def is_reachable(section: Grpc | Http | Prometheus) -> bool:
    """Whether it listens beyond loopback. Host names other than localhost count as reachable."""
    try:
        return not ipaddress.ip_address(section.endpoint.host).is_loopback
    except ValueError:
        return section.endpoint.host != "localhost"


def _authenticates(config: Config, server: Server) -> bool:
    tls = servers(config)[server].tls
    if tls is not None and tls.client_ca_file is not None:
        return True
    if server == "metrics":
        return config.exporters.prometheus.token_file is not None
    return config.auth is not None

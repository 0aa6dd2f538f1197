"""Which servers others than this machine can reach without saying who they are: a configuration
comes in, problems or warnings go out.
"""

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
"""Where each of them stands in the configuration."""


def servers(config: Config) -> dict[Server, Grpc | Http | Prometheus]:
    """The sections of the servers that are on."""
    protocols = config.receivers.otlp.protocols
    sections: dict[Server, Grpc | Http | Prometheus | None] = {
        "grpc": protocols.grpc,
        "http": protocols.http,
        "metrics": config.exporters.prometheus,
    }
    return {server: section for server, section in sections.items() if section is not None}


def exposures(config: Config) -> Iterator[Problem]:
    """Endpoints that must not be opened, unless somebody says `insecure_bind`."""
    for server, section in servers(config).items():
        if _is_reachable(section) and not _asks_who(config, server):
            expected = "token_file" if server == "metrics" else "auth.tenants"
            yield config.problem(
                (*SERVERS[server], "endpoint"),
                f"found {section.endpoint}, where others than this machine get in without"
                f" credentials; expected {expected} or tls.client_ca_file, or else insecure_bind:"
                " true",
            )


def warnings(config: Config) -> Iterator[str]:
    """What an operator may want to know of servers that are reachable."""
    for server, section in servers(config).items():
        if not _is_reachable(section):
            continue
        place = show_path(SERVERS[server])
        if not _asks_who(config, server):
            yield f"{place}: insecure_bind lets everybody in who reaches {section.endpoint}"
        elif section.tls is None:
            yield (
                f"{place}: tokens for {section.endpoint} cross the network in plain text, unless"
                " TLS ends in front of it"
            )


def _is_reachable(section: Grpc | Http | Prometheus) -> bool:
    """Whether it listens beyond loopback; names other than localhost may mean anything."""
    try:
        return not ipaddress.ip_address(section.endpoint.host).is_loopback
    except ValueError:
        return section.endpoint.host != "localhost"


def _asks_who(config: Config, server: Server) -> bool:
    section = servers(config)[server]
    asks_for_certificate = section.tls is not None and section.tls.client_ca_file is not None
    asks_for_token = (
        config.exporters.prometheus.token_file if server == "metrics" else config.auth
    ) is not None
    return asks_for_certificate or asks_for_token

"""Checks that involve several sections of a configuration, or files and packages that it needs."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from pathgauge.collector.config.config import Config
from pathgauge.collector.config.exporters import Prometheus
from pathgauge.collector.config.judging import missing_package
from pathgauge.collector.config.kafka import (
    missing_package as missing_package_of_kafka,
    unusable_files,
)
from pathgauge.collector.config.plugins.dialects import DIALECTS
from pathgauge.collector.config.postgres import missing_package as missing_package_of_postgres
from pathgauge.collector.config.receiving import Grpc, Http
from pathgauge.collector.core.documents import (
    Document,
    KeyPath,
    Problem,
    did_you_mean,
    show_path,
)
from pathgauge.collector.core.documents.quantities import Endpoint
from pathgauge.collector.core.invocations.dialects.unknown import NAME as UNKNOWN

_UNSPECIFIED = ("0.0.0.0", "::")
"""Addresses of a server that listens on all interfaces."""


def problems_across_sections(config: Config, document: Document, folder: Path) -> Iterator[Problem]:
    """All problems that the models of single sections cannot find."""
    return chain(
        _shared_endpoints(config, document),
        _exports_to_itself(config, document),
        _unknown_tenants(config, document),
        _judge_problems(config, document, folder),
        _kafka_problems(config, document, folder),
        _unsalted_hashes(config, document),
        _postgres_problems(config, document),
        _worker_problems(config, document),
        _taken_dialect_names(config, document),
    )


def _shared_endpoints(config: Config, document: Document) -> Iterator[Problem]:
    """Two servers cannot listen on one endpoint."""
    protocols: KeyPath = ("receivers", "otlp", "protocols")
    servers: dict[KeyPath, Grpc | Http | Prometheus | None] = {
        (*protocols, "grpc"): config.receivers.otlp.protocols.grpc,
        (*protocols, "http"): config.receivers.otlp.protocols.http,
        ("exporters", "prometheus"): config.exporters.prometheus,
    }
    used: dict[Endpoint, KeyPath] = {}
    for path, server in servers.items():
        if server is None or server.endpoint.port == 0:
            continue
        if server.endpoint in used:
            other = show_path((*used[server.endpoint], "endpoint"))
            text = f"found {server.endpoint}, expected an endpoint that differs from {other}"
            yield document.problem((*path, "endpoint"), text)
        used[server.endpoint] = path


def _exports_to_itself(config: Config, document: Document) -> Iterator[Problem]:
    """Events must go to a backend, not to a receiver of this collector."""
    otlp, protocols = config.exporters.sinks.get("otlp"), config.receivers.otlp.protocols
    if otlp is None:
        return
    target = otlp.endpoint.endpoint
    for receiver in (protocols.grpc, protocols.http):
        if receiver is not None and _may_be_same(target, receiver.endpoint):
            text = f"found {target}, a receiver of this collector, expected that of a backend"
            yield document.problem(("exporters", "otlp", "endpoint"), text)


def _may_be_same(target: Endpoint, listening: Endpoint) -> bool:
    """Whether a connection to `target` reaches the server, as far as names and addresses show."""
    if target.port != listening.port:
        return False
    return target.host == listening.host or (_is_local(target.host) and _is_local(listening.host))


def _is_local(host: str) -> bool:
    """Whether a host means this machine, for a client or for a server."""
    try:
        return ipaddress.ip_address(host).is_loopback or host in _UNSPECIFIED
    except ValueError:
        return host == "localhost"


def _unknown_tenants(config: Config, document: Document) -> Iterator[Problem]:
    """With a misspelled tenant, redaction rules would silently not apply."""
    known = config.auth.tenants if config.auth is not None else {}
    for name in config.redaction.tenants if config.redaction is not None else ():
        if name in known:
            continue
        text = f"found an unknown tenant, expected {_tenants(known, name)}"
        yield document.problem(("redaction", "tenants", name), text, of_key=True)


def _judge_problems(config: Config, document: Document, folder: Path) -> Iterator[Problem]:
    """A missing package, and unreadable certificates."""
    if config.judge is None:
        return
    if missing_package():
        text = (
            "found a section that needs the package openai, expected it to be installed: pip"
            " install 'pathgauge[judge]'"
        )
        yield document.problem(("judge",), text, of_key=True)
    for name, provider in config.judge.settings(folder).providers.items():
        try:
            if provider.ca_file is not None:
                ssl.create_default_context(cafile=provider.ca_file)
        except OSError as error:
            ca_file = config.judge.providers[name].ca_file
            reason = error.strerror or error
            text = f"found {ca_file!r}, expected a file of certificates in PEM ({reason})"
            yield document.problem(("judge", "providers", name, "ca_file"), text)


def _kafka_problems(config: Config, document: Document, folder: Path) -> Iterator[Problem]:
    """A missing package, unreadable files, and a tenant that does not exist."""
    if config.kafka is None:
        return
    if missing_package_of_kafka():
        text = (
            "found a section that needs the package confluent-kafka, expected it to be installed:"
            " pip install 'pathgauge[kafka]'"
        )
        yield document.problem(("kafka",), text, of_key=True)
    for name, text in unusable_files(config.kafka, folder):
        yield document.problem(("kafka", "client_files", name), text)
    tenant, known = config.kafka.tenant, config.auth.tenants if config.auth is not None else {}
    if tenant and tenant not in known:
        text = f"found {tenant!r}, expected {_tenants(known, tenant)}"
        yield document.problem(("kafka", "tenant"), text)


def _unsalted_hashes(config: Config, document: Document) -> Iterator[Problem]:
    """Without a salt each gateway makes up its own, and equal values get different hashes."""
    redaction = config.redaction
    if config.kafka is None or redaction is None or redaction.salt is not None:
        return
    if redaction.hashes():
        text = (
            "found the action hash without salt, expected a salt that all gateways have: with"
            " kafka, each would replace equal values by different hashes"
        )
        yield document.problem(("redaction",), text, of_key=True)


def _taken_dialect_names(config: Config, document: Document) -> Iterator[Problem]:
    """Results could not tell two dialects of one name apart."""
    for name in sorted(config.dialects.keys() & {*DIALECTS.names(), UNKNOWN}):
        text = "found the name of an installed dialect, expected another one"
        yield document.problem(("dialects", name), text, of_key=True)


def _postgres_problems(config: Config, document: Document) -> Iterator[Problem]:
    """A missing package, and one of Kafka and PostgreSQL without the other."""
    if config.postgres is not None and missing_package_of_postgres():
        text = (
            "found a section that needs the package psycopg, expected it to be installed: pip"
            " install 'pathgauge[postgres]'"
        )
        yield document.problem(("postgres",), text, of_key=True)
    sections = {"kafka": config.kafka, "postgres": config.postgres}
    for name, other in (("kafka", "postgres"), ("postgres", "kafka")):
        if sections[name] is not None and sections[other] is None:
            text = f"found a section without {other}, expected both: scorers read the one and write"
            yield document.problem((name,), f"{text} to the other", of_key=True)
    if config.postgres is not None and config.store is None:
        text = "found memory, expected a section: results are in PostgreSQL, and its limits apply"
        yield document.problem(("store",), text)


def _worker_problems(config: Config, document: Document) -> Iterator[Problem]:
    """Scorer processes need a store on disk, and are of no use with Kafka."""
    if config.workers == 1:
        return
    if config.store is None:
        text = "found memory, expected a store on disk: each of the workers commits to one"
        yield document.problem(("store",), text)
    if config.kafka is not None:
        text = (
            f"found {config.workers}, expected 1: with Kafka, start more processes with --role"
            " scorer"
        )
        yield document.problem(("workers",), text)


def _tenants(known: Collection[str], name: str) -> str:
    """What was expected instead of an unknown tenant."""
    if not known:
        return "none: without auth there are no tenants"
    return f"one of {', '.join(known)}{did_you_mean(name, known)}"

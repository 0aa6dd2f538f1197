"""A configuration file comes in, a `Config` goes out, or every mistake in it with its place."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from pathgauge.collector.config import criteria
from pathgauge.collector.config.config import Config
from pathgauge.collector.config.criteria import Place
from pathgauge.collector.config.exporting import Prometheus
from pathgauge.collector.config.judging import missing_package
from pathgauge.collector.config.receiving import Grpc, Http
from pathgauge.collector.config.reference_files import read_documents
from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Problem,
    Problems,
    did_you_mean,
    show_path,
    show_value,
)
from pathgauge.collector.core.documents.quantities import Endpoint
from pathgauge.collector.core.documents.validation import validate
from pathgauge.scorers.types import Json

_ANYWHERE = ("0.0.0.0", "::")
"""Where a server listens that listens everywhere."""


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read a configuration file; `None` gives the defaults. Raises `ConfigError` with every problem
    of the file.

    Scorers are built once, to check the criteria.
    """
    if path is None:
        return Config()
    document = _read(path, environment)
    written = document.data if isinstance(document.data, dict) else {}
    loaded, laid = Config(), Config().criteria
    problems = Problems()
    with problems:
        loaded = validate(Config, document, document.data)
        problems.found += (
            *_shared_endpoints(loaded, document),
            *_own_receivers(loaded, document),
            *_unknown_tenants(loaded, document),
        )
        problems.found += _cannot_ask(loaded, document, path.parent)
    with problems:
        laid = _criteria(written, document, path.parent)
    problems.report()
    return loaded.with_changes({"criteria": laid}).read_from(path.parent, document)


def _read(path: Path, environment: Mapping[str, str] | None = None) -> Document:
    found = read_documents(path, environment)
    if len(found) > 1:
        raise ConfigError([found[1].problem((), "found a second document, expected one")])
    return found[0] if found else Document(str(path), None)


def _criteria(written: Mapping[str, Json], document: Document, folder: Path) -> dict[str, Json]:
    """The criteria of the file, laid over those of its `criteria_file`; values of wrong types are
    left to the model.
    """
    named, own = written.get("criteria_file"), written.get("criteria")
    common = criteria_of_file(folder / named) if isinstance(named, str) else {}
    if not isinstance(own, dict):
        return common or dict(criteria.DEFAULTS)
    laid = criteria.lay_over(common, own)
    criteria.build(laid, Place(document, ("criteria",)), changed=own)
    return laid


def criteria_of_file(path: Path) -> dict[str, Json]:
    """The criteria of an ADK `test_config.json`; what else it says is for ADK alone."""
    document = _read(path)
    found: Json = document.data.get("criteria") if isinstance(document.data, dict) else None
    if not isinstance(found, dict):
        raise ConfigError(
            [document.problem(("criteria",), f"found {show_value(found)}, expected a mapping")]
        )
    criteria.build(found, Place(document, ("criteria",)))
    return found


def _shared_endpoints(config: Config, document: Document) -> Iterator[Problem]:
    """Two servers cannot listen at one endpoint."""
    protocols: KeyPath = ("receivers", "otlp", "protocols")
    servers: dict[KeyPath, Grpc | Http | Prometheus | None] = {
        (*protocols, "grpc"): config.receivers.otlp.protocols.grpc,
        (*protocols, "http"): config.receivers.otlp.protocols.http,
        ("exporters", "prometheus"): config.exporters.prometheus,
    }
    taken: dict[Endpoint, KeyPath] = {}
    for path, server in servers.items():
        if server is None or server.endpoint.port == 0:
            continue
        if server.endpoint in taken:
            other = show_path((*taken[server.endpoint], "endpoint"))
            yield document.problem(
                (*path, "endpoint"),
                f"found {server.endpoint}, expected another one than that of {other}",
            )
        taken[server.endpoint] = path


def _own_receivers(config: Config, document: Document) -> Iterator[Problem]:
    """Events that are sent to ourselves would never leave."""
    otlp, protocols = config.exporters.otlp, config.receivers.otlp.protocols
    for receiver in (protocols.grpc, protocols.http):
        if (
            otlp is not None
            and receiver is not None
            and _may_be_same(otlp.endpoint.endpoint, receiver.endpoint)
        ):
            text = (
                f"found {otlp.endpoint.endpoint}, where this collector itself receives, expected"
                " that of a backend"
            )
            yield document.problem(("exporters", "otlp", "endpoint"), text)


def _may_be_same(target: Endpoint, listening: Endpoint) -> bool:
    """Whether who connects to `target` reaches what listens there, as far as the names tell."""
    if target.port != listening.port:
        return False
    return target.host == listening.host or (_is_local(target.host) and _is_local(listening.host))


def _is_local(host: str) -> bool:
    """Whether a name stands for this machine, as the target of a connection or as the place of a
    server.
    """
    try:
        return ipaddress.ip_address(host).is_loopback or host in _ANYWHERE
    except ValueError:
        return host == "localhost"


def _cannot_ask(config: Config, document: Document, folder: Path) -> Iterator[Problem]:
    """What keeps a judge from working, besides the section itself."""
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
            text = (
                f"found {config.judge.providers[name].ca_file!r}, expected a file of certificates"
                f" in PEM ({error.strerror or error})"
            )
            yield document.problem(("judge", "providers", name, "ca_file"), text)


def _unknown_tenants(config: Config, document: Document) -> Iterator[Problem]:
    """Rules for a tenant that nobody can be: its content would be kept for want of a letter."""
    known = config.auth.tenants if config.auth is not None else {}
    for name in config.redaction.tenants if config.redaction is not None else ():
        if name not in known:
            expected = (
                f"one of {', '.join(known)}{did_you_mean(name, known)}"
                if known
                else "none: without auth there are no tenants"
            )
            yield document.problem(
                ("redaction", "tenants", name),
                f"found an unknown tenant, expected {expected}",
                of_key=True,
            )

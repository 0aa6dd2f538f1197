"""Loads tenants, tokens and certificates from the files that the configuration names, and reports
all problems together.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pathgauge.collector.config import Auth, Config, Tenant, Tls
from pathgauge.collector.config.secret_files import SecretFileError
from pathgauge.collector.core.documents import ConfigError, KeyPath, Problem, Problems, show_path
from pathgauge.collector.receivers.auth.certificate_expiry import expiry_warnings
from pathgauge.collector.receivers.auth.exposure import (
    SERVERS,
    Server,
    exposures,
    servers,
    warnings,
)
from pathgauge.collector.receivers.auth.tenants import Authenticate, Tenants, anonymous
from pathgauge.collector.receivers.auth.tls import ServerTls, TlsPaths
from pathgauge.collector.receivers.auth.tokens import TokenFile

_TENANTS: KeyPath = ("auth", "tenants")
_TOKEN_FILE = "token_file"


@dataclass(frozen=True, slots=True)
class Access:
    """The credentials that the servers ask for."""

    authenticate: Authenticate
    """For the receivers."""
    readers: TokenFile | None
    """The tokens that open the metrics pages; `None` if these are open to all."""
    tls: Mapping[Server, ServerTls]
    """Servers that are not listed use plain text."""
    tokens: Mapping[KeyPath, TokenFile]
    warnings: tuple[str, ...]
    """Valid settings that are probably not intended."""

    def refresh(self) -> None:
        """Apply changes of the files. This reads them, so it is not for the event loop."""
        for file in self.tokens.values():
            file.refresh()
        for certificate in self.tls.values():
            certificate.refresh()


def load_access(config: Config, *, insecure_bind: bool = False) -> Access:
    """Read all files that the configuration names for its servers. Raises `ConfigError` with every
    problem.

    `insecure_bind` allows servers to listen beyond loopback without credentials, like the
    configuration key.
    """
    problems = Problems()
    tls: dict[Server, ServerTls] = {}
    for server, section in servers(config).items():
        with problems:
            if section.tls is not None:
                tls[server] = _tls(config, SERVERS[server], section.tls)
    tokens = _tokens(config, problems)
    problems.found += _client_name_problems(config)
    if not (insecure_bind or config.insecure_bind):
        problems.found += exposures(config)
    problems.report()
    return Access(
        authenticate=_tenants(config.auth, tokens).authenticate if config.auth else anonymous,
        readers=tokens.get((*SERVERS["metrics"], _TOKEN_FILE)),
        tls=tls,
        tokens=tokens,
        warnings=(
            *warnings(config),
            *expiry_warnings(config, tls, time.time()),
            *(warning for file in tokens.values() for warning in file.warnings),
        ),
    )


def _tls(config: Config, place: KeyPath, section: Tls) -> ServerTls:
    folder = config.folder
    authority = None if section.client_ca_file is None else folder / section.client_ca_file
    try:
        return ServerTls(TlsPaths(folder / section.cert_file, folder / section.key_file, authority))
    except SecretFileError as error:
        raise ConfigError([config.problem((*place, "tls", error.key), str(error))]) from None


def _tokens(config: Config, problems: Problems) -> dict[KeyPath, TokenFile]:
    """The token files by their configuration key."""
    named: dict[KeyPath, str | None] = {
        (*SERVERS["metrics"], _TOKEN_FILE): config.exporters.prometheus.token_file
    }
    named |= {
        (*_TENANTS, name, _TOKEN_FILE): tenant.token_file
        for name, tenant in _tenant_sections(config).items()
    }
    found: dict[KeyPath, TokenFile] = {}
    for place, file in named.items():
        with problems:
            if file is not None:
                found[place] = _token_file(config, place, config.folder / file, found)
    return found


def _token_file(
    config: Config, place: KeyPath, path: Path, files: Mapping[KeyPath, TokenFile]
) -> TokenFile:
    """The file named by the key `place`. It must not share a token with another one of the `files`,
    also after later changes.
    """

    def check(digests: Iterable[bytes]) -> None:
        for other, file in files.items():
            if other != place and not set(digests).isdisjoint(file.digests):
                raise SecretFileError(
                    _TOKEN_FILE, f"found a token of {show_path(other)}, expected each in one file"
                )

    try:
        return TokenFile(path, check)
    except SecretFileError as error:
        raise ConfigError([config.problem(place, str(error))]) from None


def _tenant_sections(config: Config) -> Mapping[str, Tenant]:
    return config.auth.tenants if config.auth else {}


def _tenants(auth: Auth, tokens: Mapping[KeyPath, TokenFile]) -> Tenants:
    by_tenant = {
        name: tokens[*_TENANTS, name, _TOKEN_FILE]
        for name, tenant in auth.tenants.items()
        if tenant.token_file is not None
    }
    return Tenants(
        by_tenant,
        {name: tenant for tenant, section in auth.tenants.items() for name in section.client_names},
    )


def _client_name_problems(config: Config) -> Iterator[Problem]:
    receivers = [section for server, section in servers(config).items() if server != "metrics"]
    asked_for = any(section.tls and section.tls.client_ca_file for section in receivers)
    taken: dict[str, str] = {}
    for tenant, section in _tenant_sections(config).items():
        place = (*_TENANTS, tenant, "client_names")
        if section.client_names and not asked_for:
            yield config.problem(
                place,
                "found names, expected a receiver that asks for certificates: tls.client_ca_file",
            )
        for index, name in enumerate(section.client_names):
            if taken.setdefault(name, tenant) != tenant:
                yield config.problem(
                    (*place, index),
                    f"found {name!r}, which stands for {taken[name]!r}, expected one tenant for a"
                    " name",
                )

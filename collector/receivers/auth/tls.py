"""TLS for uvicorn and gRPC: loads the certificate of a server, its key, and the CA of its clients.

Rotated files are used from the next handshake on; open connections do not change.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

import grpc

from pathgauge.collector.config.secret_files import (
    SecretFileError,
    SecretFiles,
    read_secret,
)
from pathgauge.collector.receivers.auth.certificate_dates import (
    Validity,
    all_valid,
    any_valid,
    validities,
)

TlsFile: TypeAlias = Literal["cert_file", "client_ca_file"]

_NO_PASSWORD = ""
"""Without it, OpenSSL would ask for the password of an encrypted key on the terminal."""


@dataclass(frozen=True, slots=True)
class TlsPaths:
    """The files of one server. With `client_ca_file`, clients need a certificate."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    context: ssl.SSLContext
    grpc: grpc.ServerCertificateConfiguration
    validities: Mapping[TlsFile, Validity]


class ServerTls:
    """The certificate of one server."""

    def __init__(self, paths: TlsPaths) -> None:
        """Raises `SecretFileError`."""
        self._asks_clients = paths.client_ca_file is not None
        files = (paths.cert_file, paths.key_file, paths.client_ca_file)
        self._files = SecretFiles(
            (file for file in files if file is not None), lambda: _load(paths)
        )

    @property
    def validities(self) -> Mapping[TlsFile, Validity]:
        """From when until when each file is valid, by its key."""
        return self._files.current.validities

    def context(self) -> ssl.SSLContext:
        """The context for the next connection of an HTTP server."""
        return self._files.current.context

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """Credentials for a gRPC server, which fetches rotated certificates by itself."""
        last = initial = self._files.current.grpc

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            nonlocal last
            current = self._files.current.grpc
            if current is last:
                return None
            last = current
            return current

        # The type stubs do not know that `fetch` may return None, which means no change.
        return grpc.dynamic_ssl_server_credentials(
            initial,
            fetch,  # type: ignore[arg-type]
            self._asks_clients,
        )

    def refresh(self) -> None:
        """Read the files again if they have changed."""
        self._files.refresh()


def _load(paths: TlsPaths) -> _Loaded:
    certificate = _certificates(paths.cert_file, "cert_file")
    key = read_secret(paths.key_file, "key_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(paths.cert_file, paths.key_file, password=_NO_PASSWORD)
    except (ssl.SSLError, OSError) as error:
        raise SecretFileError(
            "key_file",
            f"{paths.key_file}: {_reason(error)}, expected the key of {paths.cert_file} in PEM",
        ) from None
    if paths.client_ca_file is None:
        return _Loaded(
            context,
            grpc.ssl_server_certificate_configuration([(key, certificate)]),
            _dated(cert_file=all_valid(_dates(certificate))),
        )
    authority = _certificates(paths.client_ca_file, "client_ca_file")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.decode("ascii"))
    return _Loaded(
        context,
        grpc.ssl_server_certificate_configuration([(key, certificate)], authority),
        _dated(
            cert_file=all_valid(_dates(certificate)), client_ca_file=any_valid(_dates(authority))
        ),
    )


def _dates(pem: bytes) -> list[Validity]:
    """None if OpenSSL reads what we do not: the certificate is used all the same."""
    try:
        return validities(pem)
    except ValueError:
        return []


def _dated(**found: Validity | None) -> Mapping[TlsFile, Validity]:
    return {cast(TlsFile, key): one for key, one in found.items() if one is not None}


def _certificates(path: Path, key: str) -> bytes:
    content = read_secret(path, key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(
            cadata=content.decode("ascii")
        )
    except (ssl.SSLError, ValueError):
        raise SecretFileError(key, f"{path}: found no readable certificate, expected PEM") from None
    return content


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return "found the key of another certificate"
    return "found no key that is readable without a password"

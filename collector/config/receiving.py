"""The sections `receivers` and `auth`: where telemetry is received, and who may send it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from pathgauge.collector.config.section import SecretSection, Section, none_if_false
from pathgauge.collector.core.documents.quantities import Count, Endpoint, Size, parse_endpoint

_MiB = 2**20
_MAX_OF_GRPC = Field(le=2**31 - 1)
"""gRPC stores these in a C int."""
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Tls(Section):
    """Certificate and key of a server, relative to `folder`. With `client_ca_file`, clients need a
    certificate.
    """

    cert_file: str
    key_file: str
    client_ca_file: str | None = None


class Grpc(Section):
    """OTLP over gRPC."""

    endpoint: Annotated[Endpoint, BeforeValidator(parse_endpoint)] = Endpoint("127.0.0.1", 4317)
    max_request_bytes: Annotated[Size, _MAX_OF_GRPC] = 16 * _MiB
    max_connections: Annotated[Count, _MAX_OF_GRPC] = 512
    tls: Annotated[Tls | None, BeforeValidator(none_if_false)] = None


class Http(Section):
    """OTLP over HTTP, protobuf and JSON."""

    endpoint: Annotated[Endpoint, BeforeValidator(parse_endpoint)] = Endpoint("127.0.0.1", 4318)
    max_request_bytes: Size = 16 * _MiB
    max_connections: Count = 512
    max_connections_per_peer: Count = 64
    tls: Annotated[Tls | None, BeforeValidator(none_if_false)] = None


class Protocols(Section):
    """The protocols of OTLP. `None` is a protocol that is switched off."""

    grpc: Annotated[Grpc | None, BeforeValidator(none_if_false)] = Grpc()
    http: Annotated[Http | None, BeforeValidator(none_if_false)] = Http()

    @model_validator(mode="after")
    def _one_is_on(self) -> Protocols:
        if self.grpc is None and self.http is None:
            raise ValueError("found all protocols switched off, expected at least one that is on")
        return self


class Otlp(Section):
    """The OTLP receiver."""

    protocols: Protocols = Protocols()


class Receivers(Section):
    """The receivers of telemetry."""

    otlp: Otlp = Otlp()


class Tenant(SecretSection):
    """The credentials of a tenant: tokens in a file, relative to `folder`, or names in client
    certificates.
    """

    token_file: str | None = None
    client_names: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_credentials(self) -> Tenant:
        if self.token_file is None and not self.client_names:
            raise ValueError("found no credentials, expected token_file, client_names or both")
        return self


class Auth(Section):
    """Who may send. Without this section, everybody who can reach the endpoint may."""

    tenants: Annotated[dict[str, Tenant], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_short(self) -> Auth:
        for name in self.tenants:
            if not _TENANT.fullmatch(name):
                raise ValueError(
                    f"found the tenant {name!r}, expected at most 64 letters, digits, '-', '_' and"
                    " '.'"
                )
        return self

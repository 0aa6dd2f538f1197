"""The section `exporters.otlp`: the OTLP backend that receives evaluation events."""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pathgauge.collector.config.section import Section, not_text
from pathgauge.collector.core.documents.quantities import (
    Count,
    Duration,
    Endpoint,
    FileName,
    Switch,
    refuse_credentials,
)
from pathgauge.scorers.types import Json

_TARGET = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>[^\s:/\[\]@]+|\[[0-9a-fA-F:.]+\])"
    r":(?P<port>[0-9]{1,5})(?P<path>/[^\s?#]*)?",
    re.ASCII,
)

_SCHEMES: dict[str | None, Literal["http", "https"]] = {"http": "http", "https": "https"}
_SIGNAL_PATHS = ("/v1/logs", "/v1/traces")
"""The ends of URLs that other exporters use as they are."""
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", re.ASCII)
_HEADER_NAME = re.compile(r"[0-9A-Za-z_.-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?", re.ASCII)


class Target(NamedTuple):
    """The address of a backend."""

    scheme: Literal["http", "https"] | None
    endpoint: Endpoint
    path: str = ""
    """The part of the URL before `/v1/logs`."""


def parse_target(value: Json) -> Target:
    """The parts of `tempo:4317`, `http://tempo:4318` or `https://example.org:443/otlp`."""
    if isinstance(value, Target):
        return value
    refuse_credentials(value)
    match = _TARGET.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match["port"]) <= 65535:
        raise ValueError(
            "host:port or a URL with a port, such as collector:4317 or http://collector:4318"
        )
    endpoint = Endpoint(match["host"].strip("[]"), int(match["port"]))
    return Target(_SCHEMES.get(match["scheme"]), endpoint, (match["path"] or "").rstrip("/"))


def checked_headers(headers: dict[str, str]) -> dict[str, str]:
    """Unchanged headers that both HTTP and gRPC can send. The error does not quote a value, which
    may be a secret.
    """
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"found the name {name!r}, expected letters, digits and any of _.-")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(
                f"found a value of {name} that no header can have, expected visible ASCII without a"
                " line break or a space at its ends"
            )
    return headers


def checked_url(value: str) -> str:
    """An address without a slash at its end."""
    if not _URL.fullmatch(value):
        raise ValueError("an address such as https://pathgauge.example")
    return value.rstrip("/")


class ClientTls(Section):
    """Certificates for the connection to the backend. File names are relative to the configuration
    file.
    """

    insecure: Switch = False
    ca_file: FileName | None = None
    cert_file: FileName | None = None
    key_file: FileName | None = None

    @model_validator(mode="after")
    def _belong_together(self) -> ClientTls:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("found one of cert_file and key_file, expected both or none")
        if self.insecure and (self.ca_file or self.cert_file):
            raise ValueError("found insecure and files for TLS, expected one or the other")
        return self


class OtlpEventsOptions(Section):
    """A backend that receives evaluations as `gen_ai.evaluation.result` events."""

    endpoint: Annotated[Target, BeforeValidator(parse_target)]
    protocol: Literal["grpc", "http/protobuf"] = "grpc"
    headers: Annotated[
        dict[str, str], BeforeValidator(not_text), AfterValidator(checked_headers)
    ] = Field(default_factory=dict)
    tls: ClientTls = ClientTls()
    timeout: Annotated[Duration, Field(gt=0)] = 10.0
    """Maximum time for a batch, retries included, in seconds."""
    queue_size: Count = 10_000
    """Maximum number of waiting events."""
    content: Switch = False
    """Whether explanations are sent, which may quote what agents and users said."""
    results_url: Annotated[str, AfterValidator(checked_url)] | None = None
    """Where browsers reach the pages of this collector."""

    @property
    def plain_text(self) -> bool:
        """Whether events are sent without TLS."""
        return self.tls.insecure or self.endpoint.scheme == "http"

    @model_validator(mode="after")
    def _endpoint_fits(self) -> OtlpEventsOptions:
        if self.endpoint.scheme == "https" and self.tls.insecure:
            raise ValueError("found https and tls.insecure, expected one or the other")
        if self.endpoint.scheme == "http" and (self.tls.ca_file or self.tls.cert_file):
            raise ValueError("found http and files for TLS, expected https")
        if self.endpoint.path and self.protocol == "grpc":
            raise ValueError(f"found the path {self.endpoint.path}, expected none with grpc")
        if self.endpoint.path.endswith(_SIGNAL_PATHS):
            raise ValueError(
                f"found the path {self.endpoint.path}, expected the part before /v1/logs, which is"
                " added"
            )
        return self

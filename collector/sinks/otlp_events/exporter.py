"""The way to a backend: the section of the configuration comes in, an exporter of log records goes
out, or what is wrong with its files.
"""

from __future__ import annotations

import logging
from collections import deque
from pathlib import Path
from typing import Any

import grpc
import requests
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpExporter
from opentelemetry.sdk._logs.export import LogRecordExporter

from pathgauge.collector.config import Config, OtlpEvents
from pathgauge.collector.core.documents import ConfigError, KeyPath

PLACE: KeyPath = ("exporters", "otlp")


_LOGGER = logging.getLogger("opentelemetry.exporter.otlp.proto")
_LONGEST_COMPLAINT = 300


class ExportErrors(logging.Handler):
    """Keeps what the exporter logged last, an attempt that failed and giving up: each would be a
    line, and the sink writes one a minute.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last = deque[str](maxlen=2)

    @property
    def last(self) -> str:
        """On one line."""
        return "; ".join(dict.fromkeys(self._last))

    def emit(self, record: logging.LogRecord) -> None:
        """Take the message in place of an older one."""
        self._last.append(record.getMessage()[:_LONGEST_COMPLAINT])


EXPORT_ERRORS = ExportErrors()


class Session(requests.Session):
    """Keeps to the configuration: `REQUESTS_CA_BUNDLE` is not trusted in place of `ca_file`, and no
    `.netrc` replaces a header.
    """

    def __init__(self) -> None:
        super().__init__()
        self.auth = _as_it_is

    def merge_environment_settings(self, *settings: Any, **named: Any) -> Any:
        """What `requests` asks for before each request."""
        merged = super().merge_environment_settings(*settings, **named)
        return {**merged, "verify": self.verify} if isinstance(self.verify, str) else merged


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def build_exporter(config: Config, section: OtlpEvents) -> LogRecordExporter:
    """The exporter that `section` of the configuration asks for; nothing is connected before the
    first export. Raises `ConfigError`.
    """
    files = {key: _readable(config, section, key) for key in ("ca_file", "cert_file", "key_file")}
    _LOGGER.handlers, _LOGGER.propagate = [EXPORT_ERRORS], False
    return _grpc(section, files) if section.protocol == "grpc" else _http(section, files)


def _grpc(section: OtlpEvents, files: dict[str, Path | None]) -> LogRecordExporter:
    contents = {key: file.read_bytes() if file else None for key, file in files.items()}
    credentials = None
    if not section.plain_text:
        credentials = grpc.ssl_channel_credentials(
            contents["ca_file"], contents["key_file"], contents["cert_file"]
        )
    headers = tuple((key.lower(), value) for key, value in section.headers.items())
    return GrpcExporter(
        str(section.endpoint.endpoint),
        insecure=section.plain_text,
        credentials=credentials,
        headers=headers,
        timeout=section.timeout,
        compression=grpc.Compression.Gzip,
    )


def _http(section: OtlpEvents, files: dict[str, Path | None]) -> LogRecordExporter:
    scheme = "http" if section.plain_text else "https"
    paths = {key: str(file) if file else None for key, file in files.items()}
    return HttpExporter(
        f"{scheme}://{section.endpoint.endpoint}{section.endpoint.path}/v1/logs",
        certificate_file=paths["ca_file"],
        client_key_file=paths["key_file"],
        client_certificate_file=paths["cert_file"],
        headers=section.headers,
        timeout=section.timeout,
        compression=Compression.Gzip,
        session=Session(),
    )


def _readable(config: Config, section: OtlpEvents, key: str) -> Path | None:
    name: str | None = getattr(section.tls, key)
    if name is None:
        return None
    file = config.folder / name
    try:
        file.read_bytes()
    except OSError as error:
        raise ConfigError(
            [config.problem((*PLACE, "tls", key), f"found {name!r}: {error.strerror}")]
        ) from None
    return file

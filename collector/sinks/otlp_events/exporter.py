"""Builds the OpenTelemetry exporter for the configured backend."""

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

from pathgauge.collector.config.plugins.sinks import SinkContext
from pathgauge.collector.sinks.otlp_events.options import OtlpEventsOptions
from pathgauge.collector.sinks.otlp_events.rotated import RotatedExporter
from pathgauge.collector.sinks.otlp_events.tls_files import tls_files

_LOGGER = logging.getLogger("opentelemetry.exporter.otlp.proto")
_MAX_ERROR_LENGTH = 300


class ExportErrors(logging.Handler):
    """Keeps the last two messages that the exporter logged: a failed attempt, and giving up. The
    sink logs them once a minute; otherwise every failure would be a log line.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last = deque[str](maxlen=2)

    @property
    def last(self) -> str:
        """These messages on one line."""
        return "; ".join(dict.fromkeys(self._last))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message instead of an older one."""
        self._last.append(record.getMessage()[:_MAX_ERROR_LENGTH])


EXPORT_ERRORS = ExportErrors()


class Session(requests.Session):
    """Lets the configuration win over the environment: `REQUESTS_CA_BUNDLE` does not replace
    `ca_file`, and `.netrc` does not replace a header.
    """

    def __init__(self) -> None:
        super().__init__()
        self.auth = _unchanged

    def merge_environment_settings(self, *settings: Any, **named: Any) -> Any:
        """The settings of a request; `requests` calls this before each request."""
        merged = super().merge_environment_settings(*settings, **named)
        if isinstance(self.verify, str):
            merged["verify"] = self.verify
        return merged


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def build_exporter(options: OtlpEventsOptions, context: SinkContext) -> LogRecordExporter:
    """The exporter for these options. It connects with its first export. Raises `ConfigError`."""
    _LOGGER.handlers, _LOGGER.propagate = [EXPORT_ERRORS], False
    named = (options.tls.ca_file, options.tls.cert_file, options.tls.key_file)
    if files := [context.folder / name for name in named if name is not None]:
        return RotatedExporter(lambda: _build(options, context), files)
    return _build(options, context)


def _build(options: OtlpEventsOptions, context: SinkContext) -> LogRecordExporter:
    files = tls_files(options, context)
    return _grpc(options, files) if options.protocol == "grpc" else _http(options, files)


def _grpc(options: OtlpEventsOptions, files: dict[str, Path | None]) -> LogRecordExporter:
    contents = {key: file.read_bytes() if file else None for key, file in files.items()}
    credentials = None
    if not options.plain_text:
        credentials = grpc.ssl_channel_credentials(
            contents["ca_file"], contents["key_file"], contents["cert_file"]
        )
    headers = tuple((key.lower(), value) for key, value in options.headers.items())
    return GrpcExporter(
        str(options.endpoint.endpoint),
        insecure=options.plain_text,
        credentials=credentials,
        headers=headers,
        timeout=options.timeout,
        compression=grpc.Compression.Gzip,
    )


def _http(options: OtlpEventsOptions, files: dict[str, Path | None]) -> LogRecordExporter:
    scheme = "http" if options.plain_text else "https"
    paths = {key: str(file) if file else None for key, file in files.items()}
    return HttpExporter(
        f"{scheme}://{options.endpoint.endpoint}{options.endpoint.path}/v1/logs",
        certificate_file=paths["ca_file"],
        client_key_file=paths["key_file"],
        client_certificate_file=paths["cert_file"],
        headers=options.headers,
        timeout=options.timeout,
        compression=Compression.Gzip,
        session=Session(),
    )

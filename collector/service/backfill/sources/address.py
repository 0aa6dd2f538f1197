"""Opens the source that an address names, such as `jaeger://localhost:16686`.

Credentials come from the environment and never from the address, which others can see in the list
of processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.collector.service.backfill.history import Source, SourceError
from pathgauge.collector.service.backfill.sources.clickhouse import ClickHouseSource, Tables
from pathgauge.collector.service.backfill.sources.files import FileSource
from pathgauge.collector.service.backfill.sources.http import HttpClient
from pathgauge.collector.service.backfill.sources.jaeger import JaegerSource
from pathgauge.collector.service.backfill.sources.tempo import ALL, TempoSource

EXPECTED = (
    "expected file://PATTERN, jaeger://HOST:PORT, tempo://HOST:PORT or"
    " clickhouse://HOST:PORT/DATABASE"
)
HEADERS = "PATHGAUGE_BACKFILL_HEADERS"
"""The variable with headers for each request: `name=value`, separated by commas, as in
`OTEL_EXPORTER_OTLP_HEADERS`.
"""
TOKEN = "PATHGAUGE_BACKFILL_TOKEN"
"""The variable with a bearer token."""
USER, PASSWORD = "CLICKHOUSE_USER", "CLICKHOUSE_PASSWORD"
_OPTIONS: Mapping[str, frozenset[str]] = {
    "jaeger": frozenset({"service"}),
    "tempo": frozenset({"q"}),
    "clickhouse": frozenset({"table", "logs_table"}),
}
_PORTS = {"jaeger": 16686, "tempo": 3200, "clickhouse": 8123}
_FILE = "file://"
_VISIBLE = re.compile(r"[ -~]*")


def open_source(
    address: str,
    spool: Path,
    *,
    secure: bool = False,
    ca_file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    progress: Progress = unreported,
) -> Source:
    """The source at `address`. `spool` is the path of a temporary file. `secure`: over HTTPS.
    Raises `SourceError`, `UnreadableFileError` for a file, and `OSError`.
    """
    if address.startswith(_FILE):
        return FileSource(address.removeprefix(_FILE), spool, progress)
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise SourceError(f"{address}: found no address, {EXPECTED}") from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.fragment:
        raise SourceError(f"{address}: found no known source, {EXPECTED}")
    if parts.username is not None or parts.password is not None:
        text = f"expected them in {HEADERS} or {TOKEN}, or {USER} and {PASSWORD}"
        raise SourceError(f"{parts.scheme}://{parts.hostname}: found credentials, {text}")
    options = parse_qs(parts.query)
    if unknown := sorted(options.keys() - _OPTIONS[parts.scheme]):
        known = ", ".join(sorted(_OPTIONS[parts.scheme]))
        raise SourceError(f"{address}: found the option {unknown[0]}, expected {known}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = "" if parts.scheme == "clickhouse" else parts.path.rstrip("/")
    scheme = "https" if secure else "http"
    client = HttpClient(
        f"{scheme}://{host}:{port or _PORTS[parts.scheme]}{path}",
        _headers(environment, parts.scheme),
        None if ca_file is None else str(ca_file),
    )
    return _source(parts.scheme, client, parts.path.strip("/"), options)


def _source(
    scheme: str, client: HttpClient, path: str, options: Mapping[str, Sequence[str]]
) -> Source:
    if scheme == "jaeger":
        return JaegerSource(client, options.get("service", ()))
    if scheme == "tempo":
        return TempoSource(client, options.get("q", [ALL])[0])
    known = Tables()
    tables = Tables(
        options.get("table", [known.spans])[0], options.get("logs_table", [known.logs])[0]
    )
    return ClickHouseSource(client, path or "default", tables)


def _headers(environment: Mapping[str, str], scheme: str) -> dict[str, str]:
    headers = {}
    for pair in filter(None, environment.get(HEADERS, "").split(",")):
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise SourceError(f"{HEADERS}: found no name=value, expected them separated by commas")
        headers[name.strip()] = value.strip()
    if token := environment.get(TOKEN):
        headers["Authorization"] = f"Bearer {token}"
    if scheme == "clickhouse" and USER in environment:
        headers["X-ClickHouse-User"] = environment[USER]
        headers["X-ClickHouse-Key"] = environment.get(PASSWORD, "")
    for name, value in headers.items():
        if not _VISIBLE.fullmatch(name + value):
            text = "found a value that a header cannot contain, expected visible ASCII"
            raise SourceError(f"the header {name!r}: {text}")
    return headers

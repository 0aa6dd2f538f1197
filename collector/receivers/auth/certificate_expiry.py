"""Says when certificates are not valid yet, expire soon, or have expired.

They are warnings: a clock may be wrong, and senders who do not check would be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.config import Config
from pathgauge.collector.config.outgoing_certificates import OutgoingFile, outgoing_files
from pathgauge.collector.core.documents import show_path
from pathgauge.collector.receivers.auth.certificate_dates import (
    Validity,
    all_valid,
    any_valid,
    validities,
)
from pathgauge.collector.receivers.auth.exposure import SERVERS, Server, servers
from pathgauge.collector.receivers.auth.tls import ServerTls

SOON_S = 14 * 86_400
"""Certificates that are renewed by themselves are renewed a month before their end, or in the last
third of a short life.
"""


class CertificateExpiry(Collector):
    """The series about the certificates in use: by the servers, and for connections to others."""

    def __init__(self, tls: Mapping[Server, ServerTls], outgoing: Iterable[OutgoingFile]) -> None:
        """Reads the files of `outgoing` that nothing reads again after the start."""
        self._tls = tls
        self._outgoing = tuple(outgoing)
        self._at_start = {file: _validity(file) for file in self._outgoing if not file.is_reread}

    def collect(self) -> Iterator[Metric]:
        """All series. prometheus_client calls this at a scrape."""
        family = GaugeMetricFamily(
            "pathgauge_certificate_expiry_timestamp_seconds",
            "When a certificate in use expires, or the last of several CAs: of a server, and for"
            " connections to others.",
            labels=("server", "file"),
        )
        for server, tls in self._tls.items():
            for key, validity in tls.validities.items():
                family.add_metric((server, key), validity.ends)
        for file in self._outgoing:
            found = self._at_start[file] if file in self._at_start else _validity(file)
            if found is not None:
                family.add_metric((file.server, file.key), found.ends)
        if family.samples:
            yield family


def expiry_warnings(config: Config, tls: Mapping[Server, ServerTls], now: float) -> Iterator[str]:
    """Certificates of servers and CAs of their clients, and certificates for connections that the
    collector opens, that are not valid at `now`, or not for long.
    """
    for server, one in tls.items():
        section = servers(config)[server].tls
        for key, validity in one.validities.items():
            if text := _doubt(validity, now):
                place = show_path((*SERVERS[server], "tls", key))
                yield f"{place}: {getattr(section, key)} {text}"
    for file in outgoing_files(config):
        found = _validity(file)
        if found is not None and (text := _doubt(found, now)):
            yield f"{file.place} {text}"


def _validity(file: OutgoingFile) -> Validity | None:
    try:
        found = _validities(file.path.read_bytes())
    except (OSError, ValueError):  # whether it can be used is checked elsewhere
        return None
    return any_valid(found) if file.has_authorities else all_valid(found)


_validities = lru_cache(maxsize=32)(validities)
"""A file with all CAs of a system takes a quarter of a second."""


def _doubt(validity: Validity, now: float) -> str:
    if now < validity.begins:
        return f"is not valid before {_shown(validity.begins)}; is the clock right?"
    if now >= validity.ends:
        return f"has expired at {_shown(validity.ends)}"
    if now >= validity.ends - SOON_S:
        days = int((validity.ends - now) // 86_400)
        return f"expires at {_shown(validity.ends)}, in {days} {'day' if days == 1 else 'days'}"
    return ""


def _shown(unix: int) -> str:
    return f"{datetime.fromtimestamp(unix, UTC):%Y-%m-%d %H:%M} UTC"

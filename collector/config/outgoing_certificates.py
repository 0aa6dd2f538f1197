"""The files of certificates with which the collector opens connections: their dates are checked,
like those of servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.config.config import Config
from pathgauge.collector.config.plugins.sinks import SINKS
from pathgauge.collector.config.postgres import CA, tls_files
from pathgauge.collector.core.documents import show_path


class OutgoingFile(NamedTuple):
    """A file of certificates in PEM."""

    place: str
    """The key that names it, and its name as it is written."""
    path: Path
    has_authorities: bool
    """One valid CA of several is enough; of a chain, all certificates must be valid."""


def outgoing_files(config: Config) -> Iterator[OutgoingFile]:
    """Those of providers of models, of sinks, of Kafka and of PostgreSQL."""
    folder = config.folder
    for name, provider in config.judge.providers.items() if config.judge is not None else ():
        if (file := provider.ca_file) is not None:
            place = show_path(("judge", "providers", name, "ca_file"))
            yield OutgoingFile(f"{place}: {file}", folder / file, has_authorities=True)
    for name, options in config.exporters.sinks.items():
        for path, file in SINKS.get(name).certificates(options).items():
            place = show_path(("exporters", name, *path))
            yield OutgoingFile(f"{place}: {file}", folder / file, path[-1] == "ca_file")
    for name, is_ca in _OF_KAFKA.items():
        if config.kafka is not None and (file := config.kafka.client.get(name)) is not None:
            place = show_path(("kafka", "client", name))
            yield OutgoingFile(f"{place}: {file}", Path(file), is_ca)
    if config.postgres is not None:
        for name, file in tls_files(config.postgres).items():
            if name != "sslkey":
                yield OutgoingFile(f"postgres.conninfo: {name}={file}", Path(file), name == CA)


_OF_KAFKA = {"ssl.ca.location": True, "ssl.certificate.location": False}

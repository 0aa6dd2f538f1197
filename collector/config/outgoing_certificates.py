"""The files of certificates with which the collector opens connections: their dates are checked,
like those of servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.config.config import Config
from pathgauge.collector.config.postgres import CA, tls_files
from pathgauge.collector.config.sinks import certificates_of
from pathgauge.collector.core.documents import show_path


class OutgoingFile(NamedTuple):
    """A file of certificates in PEM."""

    server: str
    """The section of the server that is connected to."""
    key: str
    """What names the file there."""
    place: str
    """The whole key, and the file as it is written."""
    path: Path
    has_authorities: bool
    """One valid CA of several is enough; of a chain, all certificates must be valid."""
    is_reread: bool
    """Whether a renewed file is used without a restart."""


def outgoing_files(config: Config) -> Iterator[OutgoingFile]:
    """Those of providers of models, of sinks, of Kafka and of PostgreSQL."""
    yield from _of_judges(config)
    yield from _of_sinks(config)
    yield from _of_kafka(config)
    yield from _of_postgres(config)


def _of_judges(config: Config) -> Iterator[OutgoingFile]:
    for name, provider in config.judge.providers.items() if config.judge is not None else ():
        if (file := provider.ca_file) is not None:
            section = show_path(("judge", "providers", name))
            yield OutgoingFile(
                section,
                "ca_file",
                f"{section}.ca_file: {file}",
                config.folder / file,
                has_authorities=True,
                is_reread=False,
            )


def _of_sinks(config: Config) -> Iterator[OutgoingFile]:
    for name, options in config.exporters.sinks.items():
        for path, file in certificates_of(name, options).items():
            section, key = show_path(("exporters", name)), show_path(path)
            yield OutgoingFile(
                section,
                key,
                f"{section}.{key}: {file}",
                config.folder / file,
                has_authorities=path[-1] == "ca_file",
                is_reread=True,
            )


def _of_kafka(config: Config) -> Iterator[OutgoingFile]:
    client = config.kafka.client if config.kafka is not None else {}
    for key, has_authorities in _KEYS_OF_KAFKA.items():
        if (file := client.get(key)) is not None:
            place = f"kafka.client.{key}: {file}"
            yield OutgoingFile("kafka", key, place, Path(file), has_authorities, is_reread=False)


def _of_postgres(config: Config) -> Iterator[OutgoingFile]:
    files = tls_files(config.postgres) if config.postgres is not None else {}
    for key, file in files.items():
        if key != "sslkey":
            place = f"postgres.conninfo: {key}={file}"
            yield OutgoingFile("postgres", key, place, Path(file), key == CA, is_reread=True)


_KEYS_OF_KAFKA = {"ssl.ca.location": True, "ssl.certificate.location": False}
"""Whether the file has CAs, by the key that names it."""

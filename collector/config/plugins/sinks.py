"""The installed sinks. The section `exporters.<name>` of the configuration switches one on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathgauge.collector.config.plugins.registry import PluginRegistry
from pathgauge.collector.core.documents import ConfigError, KeyPath
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.sink import Sink


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What the collector gives to a sink."""

    folder: Path
    """The folder of the configuration file; relative paths begin there."""
    telemetry: InternalTelemetry
    """The counters of the collector. `events_exported` and `events_dropped` are for what a sink
    sends and drops.
    """
    mistake: Callable[[KeyPath, str], ConfigError]
    """The error for a key of the sink's section, with its position in the file.

    The text says what was found and what was expected.
    """


def _accept(options: Any, context: SinkContext) -> None:
    """Nothing to check."""


def _no_certificates(options: Any) -> Mapping[KeyPath, str]:
    return {}


@dataclass(frozen=True, slots=True)
class SinkType:
    """A sink that configurations can name; entry points of `pathgauge.sinks` lead to these."""

    options: type[Any]
    """A dataclass or pydantic model. Its fields are the keys of the section."""
    build: Callable[[Any, SinkContext], Sink]
    """Builds the sink from its options. Raises `ConfigError`, made by `context.mistake`."""
    check: Callable[[Any, SinkContext], None] = _accept
    """Finds the mistakes that `build` would find, for `pathgauge validate`; it changes nothing."""
    certificates: Callable[[Any], Mapping[KeyPath, str]] = _no_certificates
    """The files of certificates in PEM that the section names, by their keys: a file that expires
    soon is warned of. A key `ca_file` names CAs, of which one valid one is enough.
    """


SINKS = PluginRegistry("sink", "pathgauge.sinks", SinkType)

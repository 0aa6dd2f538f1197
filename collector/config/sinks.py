"""Builds the sinks that a configuration switches on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pathgauge.collector.config.config import Config
from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.collector.config.plugins.sinks import SINKS, SinkContext
from pathgauge.collector.core.documents import ConfigError, KeyPath
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.sink import Sink

_METHODS = ("publish", "publish_judged", "publish_conversation", "withdraw", "close")


def build_sinks(config: Config, telemetry: InternalTelemetry) -> dict[str, Sink]:
    """The sinks by name. Raises `ConfigError` and `PluginError`."""
    return {
        name: _build(name, options, _context(config, name, telemetry))
        for name, options in config.exporters.sinks.items()
    }


def check_sinks(config: Config) -> None:
    """Check what the sections of sinks name. Raises `ConfigError` and `PluginError`."""
    telemetry = InternalTelemetry()
    for name, options in config.exporters.sinks.items():
        with _named(name, "checked"):
            SINKS.get(name).check(options, _context(config, name, telemetry))


def certificates_of(name: str, options: Any) -> Mapping[KeyPath, str]:
    """The files of certificates in the section of a sink, by their keys. Raises `PluginError`."""
    with _named(name, "asked for its certificates"):
        return SINKS.get(name).certificates(options)


@contextmanager
def _named(name: str, done: str) -> Iterator[None]:
    """Name the sink that failed. It is third-party code and may raise anything."""
    try:
        yield
    except (ConfigError, KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:
        text = f"the sink {name!r} cannot be {done}: {type(error).__name__}: {error}"
        raise PluginError(text) from error


def _build(name: str, options: Any, context: SinkContext) -> Sink:
    with _named(name, "built"):
        sink: object = SINKS.get(name).build(options, context)
    if not isinstance(sink, Sink):
        missing = [method for method in _METHODS if not hasattr(sink, method)]
        raise PluginError(f"the sink {name!r} lacks the methods {', '.join(missing)}")
    return sink


def _context(config: Config, name: str, telemetry: InternalTelemetry) -> SinkContext:
    def mistake(path: KeyPath, text: str) -> ConfigError:
        return ConfigError([config.problem(("exporters", name, *path), text)])

    return SinkContext(config.folder, telemetry, mistake)

"""The installed dialects. Third-party ones are asked before the built-in ones."""

from __future__ import annotations

from collections.abc import Iterable

from pathgauge.collector.config.plugins.named_dialect import named
from pathgauge.collector.config.plugins.registry import PluginRegistry, in_order
from pathgauge.collector.core.invocations.dialects import Dialect, Registry

DIALECTS = PluginRegistry("dialect", "pathgauge.dialects", Dialect)


def installed_dialects(configured: Iterable[Dialect] = ()) -> Registry:
    """All dialects, those of the configuration first. Raises `PluginError`."""
    installed = in_order(DIALECTS.all()).values()
    return Registry((*configured, *map(named, installed)))

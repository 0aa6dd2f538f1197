"""The installed dialects. Third-party ones are asked before the built-in ones."""

from __future__ import annotations

from pathgauge.collector.config.plugins.registry import PluginRegistry, in_order
from pathgauge.collector.core.invocations.dialects import Dialect, Registry

DIALECTS = PluginRegistry("dialect", "pathgauge.dialects", Dialect)


def installed_dialects() -> Registry:
    """All dialects. Raises `PluginError`."""
    return Registry(in_order(DIALECTS.all()).values())

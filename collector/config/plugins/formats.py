"""The installed formats of reference files."""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.config.plugins.registry import PluginRegistry, in_order
from pathgauge.collector.core.references.format import Format

FORMATS = PluginRegistry("reference format", "pathgauge.formats", Format)


def installed_formats() -> Mapping[str, Format]:
    """All formats by name, in the order in which they are asked. Raises `PluginError`."""
    return in_order(FORMATS.all())

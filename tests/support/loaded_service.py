"""Loads the modules of `pathgauge serve`."""

from __future__ import annotations

import pathgauge.collector.cli.checking
import pathgauge.collector.service.run  # noqa: F401

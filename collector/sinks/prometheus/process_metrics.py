"""Metrics of the process, its version and its reloads."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
)


def process_metrics(
    registry: CollectorRegistry, traces_open: Callable[[], int]
) -> tuple[Gauge, Gauge]:
    """Registers the metrics. The caller sets the two gauges that are returned: whether the last
    reload succeeded, and the Unix time of the last successful one.
    """
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("pathgauge_build", "Version of the running collector.", registry=registry)
    build.info({"version": version("pathgauge"), "pythonversion": platform.python_version()})
    Gauge(
        "pathgauge_traces_open", "Traces that wait for more spans.", registry=registry
    ).set_function(traces_open)
    return (
        Gauge(
            "pathgauge_config_last_reload_successful",
            "1 if the last reload was applied, 0 if it was refused.",
            registry=registry,
        ),
        Gauge(
            "pathgauge_config_last_reload_success_timestamp_seconds",
            "Unix time of the last successful reload.",
            registry=registry,
        ),
    )

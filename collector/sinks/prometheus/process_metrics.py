"""What the process says of itself: a registry comes in, and has the metrics of process, build and
reloads.
"""

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
    """Register them; returns whether the last reload succeeded, and the Unix time of the last one
    that did, for others to set.
    """
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("pathgauge_build", "The running collector.", registry=registry)
    build.info({"version": version("pathgauge"), "pythonversion": platform.python_version()})
    Gauge(
        "pathgauge_traces_open", "Traces that wait for more spans.", registry=registry
    ).set_function(traces_open)
    return (
        Gauge(
            "pathgauge_config_last_reload_successful",
            "Whether the last reload was put in force.",
            registry=registry,
        ),
        Gauge(
            "pathgauge_config_last_reload_success_timestamp_seconds",
            "Unix time of the last successful reload.",
            registry=registry,
        ),
    )

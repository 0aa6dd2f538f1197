"""Fits a configuration into the limits of this process: its memory and its open files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from pathgauge.collector.config import Config
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import DecodeLimits
from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.memory_guard import Kind, MemoryGuard, MemoryUse
from pathgauge.collector.service.connections import wanted_connections, with_connections
from pathgauge.collector.service.file_limit import fit_connections, hard_limit
from pathgauge.collector.service.memory.limits import MemoryLimit, read_limits
from pathgauge.collector.service.memory.plan import MemoryPlan, fit, show

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What this process can do."""

    plan: MemoryPlan
    memory: MemoryGuard
    connections: Mapping[str, int]
    """The most connections to each server."""

    @property
    def config(self) -> Config:
        """The configuration with the keys that were lowered."""
        return self.plan.config

    @property
    def receivers(self) -> ReceiverLimits:
        """The limits of all receivers, without `max_request_bytes`."""
        return ReceiverLimits(
            records=DecodeLimits(max_json_tokens=self.plan.max_json_tokens),
            max_arriving=self.plan.max_arriving,
            memory=self.memory,
        )


def fit_to_process(config: Config, telemetry: InternalTelemetry) -> ProcessLimits:
    """Lower the bounds that do not fit, and log which ones. To be called when everything that the
    configuration names was loaded, because that takes memory. Raises `ConfigError`.
    """
    connections = fit_connections(wanted := wanted_connections(config))
    if connections != wanted:
        _log.warning(
            "fewer connections are allowed, because of the limit on open files",
            limit=hard_limit(),
            **connections,
        )
    limits = shared(read_limits(), config.workers)
    use = MemoryUse() if limits else _no_use
    plan = fit(with_connections(config, connections), limits, use)
    if plan.limit is not None and plan.lowered:
        _log.warning(
            "bounds are lower than by default, because of the memory limit",
            limit=show(plan.limit.bytes),
            source=plan.limit.source,
            **plan.lowered,
        )
    guard = MemoryGuard(plan.ceilings, use, telemetry.requests_without_memory.add)
    return ProcessLimits(plan, guard, connections)


def plan_of_scorer(config: Config) -> MemoryPlan:
    """The memory of one of several scorer processes. Raises `ConfigError`."""
    limits = shared(read_limits(), config.workers)
    return fit(config, limits, MemoryUse() if limits else _no_use)


def shared(limits: Sequence[MemoryLimit], workers: int) -> Sequence[MemoryLimit]:
    """The limits of each process, if several scorers share the limit of the cgroup with their
    parent.
    """
    if workers == 1:
        return limits
    processes = workers + 1
    return [
        limit._replace(bytes=limit.bytes // processes) if limit.kind == "resident" else limit
        for limit in limits
    ]


def _no_use(_: Kind) -> int:
    return 0

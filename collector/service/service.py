"""The running collector: starts and stops the engine and the servers, and handles reloads.

A reload applies criteria, references, the baselines of regressions and the limits on series. All
other changes of the configuration need a restart. If a reload fails, the last good configuration
stays active, the log gives the reason, and `pathgauge_config_last_reload_successful` becomes 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import structlog

from pathgauge.collector import config as configuration
from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, fingerprint, resolve
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.receivers.auth.access import load_access
from pathgauge.collector.service.canary import MAX_DELAY_S, Canary
from pathgauge.collector.service.cluster.roles import ALL, Role
from pathgauge.collector.service.embedded import EmbeddedEngine
from pathgauge.collector.service.endpoints import Endpoints
from pathgauge.collector.service.engine import RELOADED, RELOADED_LIMITS, Engine
from pathgauge.collector.service.part_endings import ENDED
from pathgauge.collector.service.process_limits import fit_to_process
from pathgauge.collector.service.workers.fleet import Fleet
from pathgauge.collector.store.essential import EndedError, essential_task
from pathgauge.collector.store.queries.reading import Reading

_log = structlog.get_logger(__name__)

POLL_S = 2.0
"""How often reference files, token files and certificates are checked for changes."""

DRAIN_S = 10.0
"""Time limit at a stop for active requests, and again for queued ones."""

_RELOAD_FAILED = "reload failed, the last good configuration stays active"
_DOUBTFUL = "the configuration is valid, but probably not intended"


class Service:
    """The whole collector, from `start` to `stop`."""

    def __init__(
        self,
        config: Config,
        path: Path | None = None,
        *,
        insecure_bind: bool = False,
        roles: frozenset[Role] = ALL,
    ) -> None:
        """`path` is the file that `config` was read from; a reload reads it again. `roles` is what
        this process does, with Kafka and PostgreSQL. Raises `ConfigError`, and OSError if these
        cannot be used.
        """
        self._roles = roles
        self.telemetry = InternalTelemetry()
        self._canary: Canary | None = None
        if config.canary:
            self._canary = Canary(
                config.canary.interval,
                config.assembly.settle + MAX_DELAY_S,
                shared=config.kafka is not None,
            )
        self._path = None if path is None else path.absolute()
        anchored = config.anchored()
        self._fingerprint = fingerprint(anchored)
        setup = resolve(config)  # names files as the operator does
        self._setup = setup = replace(setup, fingerprint=self._fingerprint)
        self._started_with = self._config = config = anchored
        self._access = load_access(config, insecure_bind=insecure_bind)
        self._limits = limits = fit_to_process(config, self.telemetry)
        for warning in (*setup.warnings, *self._access.warnings):
            _log.warning(_DOUBTFUL, warning=warning)
        # One reload at a time: of two, the first could finish last and apply the older criteria.
        self._reloading = asyncio.Lock()
        self._state: Literal["starting", "serving", "stopping"] = "starting"
        self._database: Reading | None = None
        self._engine = self._build_engine()
        self._endpoints = Endpoints(
            limits,
            self._access,
            self._engine,
            self.telemetry,
            canary=self._canary,
            unready=self._unready,
            unhealthy=lambda: list(self.failures),
            roles=roles,
            database=self._database,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._file_is_invalid = False
        self._is_stuck = False
        self.failures: tuple[str, ...] = ()
        """Why the process cannot go on. Only another one can."""

    def _build_engine(self) -> Engine:
        config, setup = self._limits.config, self._setup
        if config.kafka is not None and config.postgres is not None:
            # Their clients are optional packages.
            from pathgauge.collector.service.cluster.engine import Cluster  # noqa: PLC0415
            from pathgauge.collector.store.postgres.reading import (  # noqa: PLC0415
                PostgresReading,
            )

            self._database = PostgresReading(config.postgres.conninfo)
            return Cluster(
                config,
                setup,
                self.telemetry,
                self._canary,
                roles=self._roles,
                plan=self._limits.plan,
            )
        if config.workers == 1:
            return EmbeddedEngine(config, setup, self.telemetry, self._canary, self._limits.plan)
        return Fleet(config, setup, self.telemetry, self._canary)

    @property
    def ports(self) -> dict[str, int]:
        """The open ports: `grpc`, `http` and `metrics`, without protocols that are switched off."""
        return self._endpoints.ports

    @property
    def answers(self) -> bool:
        """Whether senders wait for this process."""
        return "gateway" in self._roles

    @property
    def max_connections(self) -> int:
        """The maximum number of simultaneous connections to all servers."""
        return sum(self._limits.connections.values())

    @property
    def totals(self) -> dict[str, int]:
        """The most important counters, for the last line of the log."""
        counted = self._engine.counted
        return {
            "spans": counted.accepted.total(),
            "invocations": counted.invocations_read.total(),
            "scored": counted.invocations_scored.total(),
            "skipped": counted.invocations_skipped.total(),
        }

    async def start(self) -> None:
        """Continue where the last process stopped, and start all servers.

        Raises OSError, naming the endpoint or the store, when one is unavailable; then nothing
        keeps running.
        """
        await self._engine.start()
        try:
            await self._endpoints.start()
        except OSError:
            await self.stop()
            raise
        self._tasks.append(essential_task(self._watch_files(), "references"))
        if self._canary is not None and "gateway" in self._roles:
            canaries = self._canary.run(self._endpoints.canary_sender(self._canary))
            self._tasks.append(essential_task(canaries, "canary"))
        self._state = "serving"
        _log.info("ready", **self.ports, **_active(self._setup))

    async def stop(self) -> None:
        """Refuse new requests, finish active ones, process what is queued, then close."""
        self._state = "stopping"
        for task in self._tasks:
            task.cancel()
        await self._endpoints.stop_receiving(DRAIN_S)
        await self._engine.stop(DRAIN_S)
        self._log_stuck()
        await self._endpoints.stop()

    async def reload(self) -> bool:
        """Read the configuration file again and apply its criteria and references; returns
        whether that succeeded.
        """
        succeeded = await self._reload(lambda: configuration.load(self._path))
        self._file_is_invalid = not succeeded
        return succeeded

    async def _watch_files(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            self._log_stuck()
            try:
                await self._look_at_files()
            except Exception:  # such as no memory for a thread; the next time may succeed
                _log.exception("changes of files could not be looked for")

    async def _look_at_files(self) -> None:
        await asyncio.to_thread(self._access.refresh)
        if await asyncio.to_thread(fingerprint, self._config) != self._fingerprint:
            await self._reload(lambda: self._config)
            if self._file_is_invalid:
                # Good references do not repair the configuration file, which would stop the next
                # start.
                self._engine.configure_failed()

    def _log_stuck(self) -> None:
        """Once for each time: the number of seconds in the reason grows."""
        reasons = self._engine.stuck()
        if reasons and not self._is_stuck:
            _log.error("nothing is published", reasons=reasons)
        self._is_stuck = bool(reasons)

    async def _reload(self, read: Callable[[], Config]) -> bool:
        async with self._reloading:
            self._fingerprint = await asyncio.to_thread(fingerprint, self._config)
            try:
                config, setup = await asyncio.to_thread(self._resolved, read)
            except ConfigError as error:
                for problem in error.problems:
                    _log.error(_RELOAD_FAILED, problem=str(problem))
            # Scorers are third-party code: their exceptions must not end the watch of the files.
            except Exception:
                _log.exception(_RELOAD_FAILED)
            else:
                self._apply(config, setup)
                return True
            self._engine.configure_failed()
            return False

    def _resolved(self, read: Callable[[], Config]) -> tuple[Config, ActiveConfig]:
        config = read()
        # A changed judge needs a restart, so the criteria are built with the active one.
        return config, resolve(config.with_changes({"judge": self._started_with.judge}))

    def _apply(self, config: Config, setup: ActiveConfig) -> None:
        self._config, self._fingerprint, self._setup = config, setup.fingerprint, setup
        self._engine.configure(setup, config)
        for warning in setup.warnings:
            _log.warning(_DOUBTFUL, warning=warning)
        before = _fixed_sections(self._started_with)
        changed = [
            name for name, section in _fixed_sections(config).items() if section != before[name]
        ]
        if changed:
            _log.warning("changed sections need a restart to take effect", sections=changed)
        _log.info("reloaded", **_active(setup))

    def ended(self, error: EndedError) -> None:
        """A part that the service needs has ended; for any thread. Health tells until the end."""
        _log.error(ENDED, reason=str(error))
        self.failures = (*self.failures, str(error))

    def _unready(self) -> list[str]:
        if self.failures:
            return list(self.failures)
        if self._state != "serving":
            return [f"the collector is {self._state}"]
        reasons = self._engine.unready()
        if reasons:  # a slow sink alone refuses no request
            reasons += self._engine.stuck()
        if not self._limits.memory.fits():
            reasons.append("the memory limit is near: senders are told to retry")
        return reasons


def _active(setup: ActiveConfig) -> dict[str, Any]:
    return {
        "references": len(setup.references),
        "criteria": [criterion.name for criterion in setup.evaluator.criteria],
    }


def _fixed_sections(config: Config) -> dict[str, object]:
    """What only a restart applies."""
    sections = {name: getattr(config, name) for name in Config.model_fields}
    fixed = {name: section for name, section in sections.items() if name not in RELOADED}
    exporters = dict(config.exporters)
    endpoint = dict(config.exporters.prometheus)
    exporters["prometheus"] = {key: endpoint[key] for key in endpoint if key not in RELOADED_LIMITS}
    budget = None if config.shadow is None else config.shadow.budget
    return {
        **fixed,
        "scenario": config.scenario.keys,
        "exporters": exporters,
        "shadow.budget": budget,
    }

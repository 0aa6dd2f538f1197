"""The running collector: a `Config` comes in; the lives of engine and endpoints, reloads and
signals are owned here and nowhere else.

What a reload changes is the criteria, the references and what regressions are measured from;
everything else of the configuration takes a restart. A reload that fails leaves the last good set
in force, says so in the log, and sets `pathgauge_config_last_reload_successful` to 0.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

import structlog

from pathgauge.collector import config as configuration
from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, fingerprint, resolve
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.receivers.auth.access import load_access
from pathgauge.collector.service.canary import PATIENCE_S, Canary
from pathgauge.collector.service.endpoints import Endpoints
from pathgauge.collector.service.engine import Engine
from pathgauge.collector.service.file_limit import allow
from pathgauge.collector.service.logging import log_unhandled, log_unhandled_in_thread
from pathgauge.collector.service.process_tuning import tune

_log = structlog.get_logger(__name__)

POLL_S = 2.0
"""How often reference files, token files and certificates are looked at for changes."""

DRAIN_S = 10.0
"""How long a stop may take: for requests under way, and again for what is still open."""

_RELOADED = frozenset({"criteria", "criteria_file", "references", "regression"})
"""The sections of the configuration that a reload puts in force. Of `scenario` it leaves the keys
alone to a restart.
"""

_RELOAD_FAILED = "reload failed, what was in force stays"
_DOUBTFUL = "the configuration is allowed, but probably not what was meant"


class Service:
    """Everything that runs, from `start` to `stop`."""

    def __init__(
        self, config: Config, path: Path | None = None, *, insecure_bind: bool = False
    ) -> None:
        """`path` is the file that `config` came from, to be read again on reload. Raises
        `ConfigError`.
        """
        self.telemetry = InternalTelemetry(durable=True)
        self._canary = (
            Canary(config.canary.interval, config.assembly.settle + PATIENCE_S)
            if config.canary
            else None
        )
        self._started_with = self._config = config
        self._path = path
        self._setup = setup = resolve(config)
        self._access = load_access(config, insecure_bind=insecure_bind)
        for warning in (*setup.warnings, *self._access.warnings):
            _log.warning(_DOUBTFUL, warning=warning)
        self._fingerprint = setup.fingerprint
        # One reload at a time: of two, the one that began first may end last, and would put the
        # older criteria in force.
        self._renewing = asyncio.Lock()
        self._state: Literal["starting", "serving", "stopping"] = "starting"
        self._engine = Engine(config, setup, self.telemetry, self._canary)
        self._endpoints = Endpoints(
            config,
            self._access,
            self._engine,
            self.telemetry,
            canary=self._canary,
            unready=self._unready,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._file_refused = False

    @property
    def ports(self) -> dict[str, int]:
        """The ports listened on: `grpc`, `http` and `metrics`; a protocol that is switched off is
        absent.
        """
        return self._endpoints.ports

    @property
    def max_connections(self) -> int:
        """How many connections there can be at a time."""
        return self._endpoints.max_connections

    @property
    def totals(self) -> dict[str, int]:
        """What came in and what became of it, in a few numbers."""
        return {
            "spans": self.telemetry.accepted.total(),
            "invocations": self.telemetry.invocations_read.total(),
            "scored": self.telemetry.invocations_scored.total(),
            "skipped": self.telemetry.invocations_skipped.total(),
        }

    async def start(self) -> None:
        """Go on where the last process stopped, and listen everywhere.

        Raises OSError, naming the endpoint or the store, when one cannot be had; nothing runs then.
        """
        await asyncio.to_thread(self._engine.resume)
        try:
            await self._endpoints.start()
        except OSError:
            await self.stop()
            raise
        self._tasks.append(asyncio.create_task(self._watch_references(), name="references"))
        if self._canary is not None:
            self._tasks.append(
                asyncio.create_task(
                    self._canary.run(self._endpoints.way_of_canaries(self._canary)), name="canary"
                )
            )
        self._state = "serving"
        _log.info("ready", **self.ports, **_in_force(self._setup))

    async def stop(self) -> None:
        """Refuse new requests, finish those under way, read what is still open, then close."""
        self._state = "stopping"
        for task in self._tasks:
            task.cancel()
        await self._endpoints.stop_receiving(DRAIN_S)
        await asyncio.to_thread(self._engine.stop, DRAIN_S)
        await self._endpoints.stop()

    async def reload(self) -> bool:
        """Read the configuration file again and put its criteria and references in force; says
        whether that could be done.
        """
        renewed = await self._renew(lambda: configuration.load(self._path))
        self._file_refused = not renewed
        return renewed

    async def _watch_references(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            await asyncio.to_thread(self._access.refresh)
            if await asyncio.to_thread(fingerprint, self._config) != self._fingerprint:
                await self._renew(lambda: self._config)
                if self._file_refused:
                    # good references do not mend the file, which would stop the next start
                    self._engine.configure_failed()

    async def _renew(self, read: Callable[[], Config]) -> bool:
        async with self._renewing:
            self._fingerprint = fingerprint(self._config)
            try:
                config, setup = await asyncio.to_thread(self._resolved, read)
            except ConfigError as error:
                for problem in error.problems:
                    _log.error(_RELOAD_FAILED, problem=str(problem))
            # scorers are foreign code: what they raise must not end the watch over the references
            except Exception:
                _log.exception(_RELOAD_FAILED)
            else:
                self._put_in_force(config, setup)
                return True
            self._engine.configure_failed()
            return False

    def _resolved(self, read: Callable[[], Config]) -> tuple[Config, ActiveConfig]:
        config = read()
        # Another judge takes a restart, so the criteria are those of the present one.
        return config, resolve(config.with_changes({"judge": self._started_with.judge}))

    def _put_in_force(self, config: Config, setup: ActiveConfig) -> None:
        self._config, self._fingerprint, self._setup = config, setup.fingerprint, setup
        self._engine.configure(setup)
        for warning in setup.warnings:
            _log.warning(_DOUBTFUL, warning=warning)
        before = _for_a_restart(self._started_with)
        waiting = [
            name for name, section in _for_a_restart(config).items() if section != before[name]
        ]
        if waiting:
            _log.warning("changed, but not in force before a restart", sections=waiting)
        _log.info("reloaded", **_in_force(setup))

    def _unready(self) -> list[str]:
        if self._state != "serving":
            return [f"the collector is {self._state}"]
        return self._engine.unready()


def _in_force(setup: ActiveConfig) -> dict[str, Any]:
    return {
        "references": len(setup.references),
        "criteria": [criterion.name for criterion in setup.evaluator.criteria],
    }


def _for_a_restart(config: Config) -> dict[str, object]:
    """The sections that a reload does not put in force, without what it does."""
    return {
        name: getattr(config, name) for name in Config.model_fields if name not in _RELOADED
    } | {"scenario": config.scenario.keys}


async def run(
    service: Service, beside: Callable[[Service], Coroutine[None, None, None]] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; SIGHUP reloads. Raises OSError when an endpoint
    cannot be had.

    `beside` is run while the service serves, and cancelled before it drains; when it ends by
    itself, so does the service. What it raised is raised here after the drain.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    reloads: set[asyncio.Task[bool]] = set()

    def reload() -> None:
        task = loop.create_task(service.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    for warning in allow(service.max_connections):
        _log.warning(_DOUBTFUL, warning=warning)
    loop.set_exception_handler(log_unhandled)
    threading.excepthook = log_unhandled_in_thread
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_signal_handler(signal.SIGINT, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, reload)
    await service.start()
    tune()
    companion = loop.create_task(beside(service) if beside else stopping.wait())
    companion.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    _log.info("stopping")
    companion.cancel()
    await asyncio.wait([companion])
    await service.stop()
    _log.info("stopped", **service.totals)
    if not companion.cancelled():
        companion.result()

"""The running collector: a `Config` comes in; servers, the worker thread, reloads and signals are owned here and nowhere else.

What a reload changes is the criteria and the references; everything else of the configuration takes a restart. A reload that fails
leaves the last good set in force, says so in the log, and sets `pathgauge_config_last_reload_successful` to 0.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

import structlog

from collector import config as configuration
from collector.assembler import Bounds
from collector.config import Config
from collector.documents import ConfigError
from collector.http_server import HttpServer
from collector.pipeline import Pipeline
from collector.plugins import installed_dialects
from collector.receivers.export import ReceiverLimits
from collector.receivers.grpc import GrpcReceiver
from collector.receivers.http import HttpReceiver
from collector.setup import Setup, fingerprint, resolve
from collector.sinks.gauges import Queue
from collector.sinks.labels import Limits
from collector.sinks.prometheus import PrometheusSink
from collector.telemetry import Ledger
from collector.web.app import create_app
from collector.windows import Windows
from collector.worker import Worker

_log = structlog.get_logger(__name__)

QUEUE_BYTES = 64 << 20
"""Batches that wait for the worker; beyond it senders are told to retry."""

POLL_S = 2.0
"""How often reference files are looked at for changes."""

DRAIN_S = 10.0
"""How long a stop may take: for requests under way, and again for what is still open."""

_RELOADED = frozenset({"criteria", "criteria_file", "references"})
"""The sections of the configuration that a reload puts in force."""

_RELOAD_FAILED = "reload failed, what was in force stays"


class Service:
    """Everything that runs, from `start` to `stop`."""

    def __init__(self, config: Config, path: Path | None = None) -> None:
        """`path` is the file that `config` came from, to be read again on reload. Raises `ConfigError`."""
        self.ledger = Ledger()
        self._started_with = self._config = config
        self._path = path
        self._setup = setup = resolve(config)
        for warning in setup.warnings:
            _log.warning(warning)
        self._fingerprint = setup.fingerprint
        # One reload at a time: of two, the one that began first may end last, and would put the older criteria in force.
        self._renewing = asyncio.Lock()
        self._state: Literal["starting", "serving", "stopping"] = "starting"
        self._pipeline = Pipeline(
            setup.evaluator,
            setup.references,
            self.ledger,
            Bounds(**config.assembly.model_dump()),
            scenario_keys=config.scenario.keys,
            registry=installed_dialects(),
            conversation_idle=config.conversations.idle,
        )
        windows = config.windows
        self._sink = PrometheusSink(
            setup.evaluator,
            setup.references,
            self.ledger,
            windows=Windows(size=windows.size, max_age_s=windows.max_age, stale_after_s=windows.stale_after),
            limits=Limits(max_series=config.exporters.prometheus.max_series),
            min_samples=windows.min_samples,
            traces_open=lambda: self._pipeline.open_traces,
            queues={
                "ingest": Queue(lambda: self._worker.waiting, QUEUE_BYTES),
                "open_traces": Queue(lambda: self._pipeline.open_bytes, config.assembly.max_open_bytes),
            },
        )
        self._worker = Worker(self._pipeline, [self._sink], QUEUE_BYTES)
        self._receivers = self._build_receivers()
        self._web = HttpServer(create_app(self._sink.registry, self._unready), str(config.exporters.prometheus.endpoint))
        self._watch: asyncio.Task[None] | None = None
        self._file_refused = False

    def _build_receivers(self) -> dict[str, GrpcReceiver | HttpReceiver]:
        protocols = self._config.receivers.otlp.protocols
        receivers: dict[str, GrpcReceiver | HttpReceiver] = {}
        if protocols.grpc is not None:
            limits = ReceiverLimits(max_request_bytes=protocols.grpc.max_request_bytes)
            receivers["grpc"] = GrpcReceiver(str(protocols.grpc.endpoint), self._worker.accept, self.ledger, limits)
        if protocols.http is not None:
            limits = ReceiverLimits(max_request_bytes=protocols.http.max_request_bytes)
            receivers["http"] = HttpReceiver(str(protocols.http.endpoint), self._worker.accept, self.ledger, limits)
        return receivers

    @property
    def ports(self) -> dict[str, int]:
        """The ports listened on: `grpc`, `http` and `metrics`; a protocol that is switched off is absent."""
        return {name: receiver.port for name, receiver in self._receivers.items()} | {"metrics": self._web.port}

    @property
    def totals(self) -> dict[str, int]:
        """What came in and what became of it, in a few numbers."""
        return {
            "spans": self.ledger.accepted.total(),
            "invocations": self.ledger.invocations_read.total(),
            "scored": self.ledger.invocations_scored.total(),
            "skipped": self.ledger.invocations_skipped.total(),
        }

    async def start(self) -> None:
        """Listen everywhere. Raises OSError, naming the endpoint, when one cannot be had; nothing runs then."""
        self._worker.start()
        try:
            for server in (self._web, *self._receivers.values()):
                await server.start()
        except OSError:
            await self.stop()
            raise
        self._watch = asyncio.create_task(self._watch_references(), name="references")
        self._state = "serving"
        _log.info("ready", **self.ports, **_in_force(self._setup))

    async def stop(self) -> None:
        """Refuse new requests, finish those under way, read what is still open, then close."""
        self._state = "stopping"
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.gather(*(receiver.stop(DRAIN_S) for receiver in self._receivers.values()))
        if not await asyncio.to_thread(self._worker.stop, DRAIN_S):
            _log.error("open traces could not be read in time", open_traces=self._pipeline.open_traces)
        await self._web.stop(1.0)

    async def reload(self) -> bool:
        """Read the configuration file again and put its criteria and references in force; says whether that could be done."""
        renewed = await self._renew(lambda: configuration.load(self._path))
        self._file_refused = not renewed
        return renewed

    async def _watch_references(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            if await asyncio.to_thread(fingerprint, self._config) != self._fingerprint:
                await self._renew(lambda: self._config)
                if self._file_refused:
                    self._sink.configure_failed()  # good references do not mend the file, which would stop the next start

    async def _renew(self, read: Callable[[], Config]) -> bool:
        async with self._renewing:
            self._fingerprint = fingerprint(self._config)
            try:
                config, setup = await asyncio.to_thread(_resolved, read)
            except ConfigError as error:
                for problem in error.problems:
                    _log.error(_RELOAD_FAILED, problem=str(problem))
            except Exception:  # scorers are foreign code: what they raise must not end the watch over the references
                _log.exception(_RELOAD_FAILED)
            else:
                self._put_in_force(config, setup)
                return True
            self._sink.configure_failed()
            return False

    def _put_in_force(self, config: Config, setup: Setup) -> None:
        self._config, self._fingerprint, self._setup = config, setup.fingerprint, setup
        self._worker.call(lambda: self._pipeline.configure(setup.evaluator, setup.references))
        self._sink.configure(setup.evaluator, setup.references)
        for warning in setup.warnings:
            _log.warning(warning)
        before = self._started_with
        waiting = [name for name in Config.model_fields if name not in _RELOADED and getattr(config, name) != getattr(before, name)]
        if waiting:
            _log.warning("changed, but not in force before a restart", sections=waiting)
        _log.info("reloaded", **_in_force(setup))

    def _unready(self) -> list[str]:
        if self._state != "serving":
            return [f"the collector is {self._state}"]
        reasons = [] if self._worker.alive else ["the pipeline thread is not running"]
        if self._pipeline.full:
            reasons.append("open traces use up their memory: senders are told to retry")
        return reasons


def _in_force(setup: Setup) -> dict[str, Any]:
    return {"references": len(setup.references), "criteria": [criterion.name for criterion in setup.evaluator.criteria]}


def _resolved(read: Callable[[], Config]) -> tuple[Config, Setup]:
    config = read()
    return config, resolve(config)


async def run(service: Service, beside: Callable[[Service], Coroutine[None, None, None]] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then drain; SIGHUP reloads. Raises OSError when an endpoint cannot be had.

    `beside` is run while the service serves, and cancelled before it drains; when it ends by itself, so does the service.
    What it raised is raised here after the drain.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    reloads: set[asyncio.Task[bool]] = set()

    def reload() -> None:
        task = loop.create_task(service.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_signal_handler(signal.SIGINT, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, reload)
    await service.start()
    # The core makes no reference cycles, and holds hundreds of thousands of spans that every full collection would walk in vain.
    gc.freeze()
    gc.set_threshold(50_000, 100, 100)
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

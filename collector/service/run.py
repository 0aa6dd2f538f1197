"""Runs the collector until a signal ends it, or until a part that it needs has ended."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NoReturn

import structlog

from pathgauge.collector.service import early_signals
from pathgauge.collector.service.file_limit import raise_file_limit
from pathgauge.collector.service.memory.saving import MAX_POOL_THREADS
from pathgauge.collector.service.part_endings import ending_in_loop, ending_in_thread
from pathgauge.collector.service.process_end import FAILED, end_process
from pathgauge.collector.service.process_tuning import starting, tune
from pathgauge.collector.service.service import DRAIN_S, Service
from pathgauge.collector.store.essential import EndedError

_log = structlog.get_logger(__name__)


async def run(
    service: Service, beside: Callable[[Service], Coroutine[None, None, None]] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then drain. SIGHUP reloads, one that was held too. Raises
    OSError when an endpoint is unavailable.

    If a part that the service needs ends, the process ends with status 1, after a drain as far as
    that is possible. `beside` runs while the service serves, and is cancelled before the drain. If
    it ends first, the service stops. Its exception is raised here after the drain.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    reloads: set[asyncio.Task[bool]] = set()

    def reload() -> None:
        task = loop.create_task(service.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    raise_file_limit(service.max_connections)
    loop.set_default_executor(ThreadPoolExecutor(MAX_POOL_THREADS, "helper"))

    def ended(error: EndedError) -> None:
        service.ended(error)
        loop.call_soon_threadsafe(stopping.set)

    loop.set_exception_handler(ending_in_loop(ended))
    threading.excepthook = ending_in_thread(ended)
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_signal_handler(signal.SIGINT, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, reload)
    with starting():
        await service.start()
    early_signals.release()
    tune(answers=service.answers)
    companion = loop.create_task(beside(service) if beside else stopping.wait())
    companion.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    _log.info("stopping")
    companion.cancel()
    await asyncio.wait([companion])
    if service.failures:
        await _end(service)
    await service.stop()
    _log.info("stopped", **service.totals)
    if not companion.cancelled():
        companion.result()


async def _end(service: Service) -> NoReturn:
    """Drain as far as possible, and end the process. What is left of it may wait for ever for the
    part that has ended.
    """
    with suppress(Exception):
        async with asyncio.timeout(DRAIN_S):
            await service.stop()
    end_process(FAILED)

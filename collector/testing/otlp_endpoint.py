"""An OTLP/HTTP endpoint on loopback, served by the collector's own receiver in a thread.

Tests run in the main thread, and often in an event loop of their own, so the receiver has another.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Self

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Consumer
from pathgauge.collector.receivers.http import HttpReceiver

_STOP_S = 5.0


class OtlpEndpoint:
    """Receives from `start` to `stop`."""

    def __init__(self, accept: Consumer) -> None:
        self.telemetry = InternalTelemetry()
        self._loop = asyncio.new_event_loop()
        self._receiver = HttpReceiver("127.0.0.1:0", accept, self.telemetry)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="pathgauge otlp", daemon=True
        )

    @property
    def url(self) -> str:
        """The base address, for `OTEL_EXPORTER_OTLP_ENDPOINT`."""
        return f"http://127.0.0.1:{self._receiver.port}"

    def start(self) -> Self:
        """Listen on a free port. Raises `OSError`."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._receiver.start(), self._loop).result()
        return self

    def stop(self) -> None:
        """Answer the active requests, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._receiver.stop(_STOP_S), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

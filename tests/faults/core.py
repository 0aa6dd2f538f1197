"""The collector without its servers, in threads of this process. It starts and stops quickly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.operating import Store
from pathgauge.collector.config.scoring import Assembly
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.service.embedded import EmbeddedEngine

from .traffic import Request

LATE_S = 1200.0
STOP_S = 30.0
RETRY_S = 0.1
MAX_REFUSALS = 150
MAX_PAUSE_S = 15.0
"""After late spans, a trace of the tests is read again within this time. Incomplete ones wait for
`LATE_S`.
"""
_ORIGIN = Origin("", "grpc", "traces", "protobuf")


class Core:
    """An engine, from `start` to `stop`."""

    def __init__(
        self, folder: Path, setup: ActiveConfig, commit: float, max_bytes: int = 1 << 30
    ) -> None:
        """`folder` is the folder of the store. `max_bytes` is its limit, which may be lower than
        the configuration allows. `commit` is in seconds.
        """
        assembly = Assembly(settle=commit, idle=LATE_S, max_age=LATE_S, late_ttl=LATE_S)
        self.telemetry = InternalTelemetry()
        self._settle = commit
        self._engine = EmbeddedEngine(
            Config(
                assembly=assembly,
                store=Store(path=str(folder)).model_copy(update={"max_bytes": max_bytes}),
            ),
            setup,
            self.telemetry,
            None,
        )

    def start(self) -> None:
        """Continue where the last process stopped."""
        self._engine.resume()

    def take(self, requests: Iterable[Request]) -> int:
        """Send every request until it is acknowledged; returns the number of refusals."""

        async def take() -> int:
            refused = 0
            for request in requests:
                batch = Batch(_ORIGIN, request.body, spans=tuple(request.spans()))
                while not await self._engine.accept(batch):
                    refused += 1
                    assert refused < MAX_REFUSALS
                    await asyncio.sleep(RETRY_S)
            return refused

        return asyncio.run(take())

    @property
    def used(self) -> int:
        """The size of the store in bytes."""
        return self._engine.usage().store.used

    def reads_nothing(self) -> bool:
        """Whether only incomplete traces are waiting, and none pauses before it is read again."""
        if self._engine.usage().backlog_requests:
            return False
        deadline = self._engine._scorer.pipeline.deadline()
        ready = self._engine._store.horizon() + 2 * self._settle + MAX_PAUSE_S
        return deadline is None or deadline > ready

    def stop(self) -> None:
        """Stop in an orderly way."""
        self._engine.finish(STOP_S)

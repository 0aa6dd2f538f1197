"""The collector without its servers, in threads of this process: as it stands on one folder, fast
to begin and to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.exporting import Store
from pathgauge.collector.config.scoring import Assembly
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.service.engine import Engine

from .traffic import Request

LATE_S = 1200.0
STOP_S = 30.0
RETRY_S = 0.1
MAX_REFUSALS = 150
_ORIGIN = Origin("", "grpc", "traces", "protobuf")


class Core:
    """An engine, from `start` to `stop`."""

    def __init__(
        self, folder: Path, setup: ActiveConfig, commit: float, max_bytes: int = 1 << 30
    ) -> None:
        """`folder` is that of the store, `max_bytes` its bound, which may be lower than operators
        may set it; `commit` is in seconds.
        """
        assembly = Assembly(settle=commit, idle=LATE_S, max_age=LATE_S, late_ttl=LATE_S)
        self.telemetry = InternalTelemetry(durable=True)
        self._settle = commit
        self._engine = Engine(
            Config(
                assembly=assembly,
                store=Store(path=str(folder)).model_copy(update={"max_bytes": max_bytes}),
            ),
            setup,
            self.telemetry,
            None,
        )

    def start(self) -> None:
        """Go on where the folder stopped."""
        self._engine.resume()

    def take(self, requests: Iterable[Request]) -> int:
        """Have every request acknowledged; returns how often one was refused before."""

        async def take() -> int:
            refused = 0
            for request in requests:
                batch = Batch(_ORIGIN, request.body, spans=tuple(request.spans()))
                while not await self._engine.worker.accept(batch):
                    refused += 1
                    assert refused < MAX_REFUSALS
                    await asyncio.sleep(RETRY_S)
            return refused

        return asyncio.run(take())

    @property
    def used(self) -> int:
        """Bytes that the store holds."""
        return self._engine.inspection.store.usage().used

    def reads_nothing(self) -> bool:
        """Whether nothing waits but traces of which something is missing."""
        seen = self._engine.inspection
        deadline = seen.pipeline.deadline()
        return seen.worker.backlog == 0 and (
            deadline is None or deadline > seen.store.horizon() + 2 * self._settle
        )

    def stop(self) -> None:
        """End in order."""
        self._engine.stop(STOP_S)

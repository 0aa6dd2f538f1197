"""What the parent of a scorer does with the rows that it gets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pathgauge.collector.service.workers.channel import open_channel
from pathgauge.collector.service.workers.sending import Sending
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.running import PATIENCE_S


@asynccontextmanager
async def sending_to(
    parent: Callable[[Sending, Any], object], folder: Path, store: SqliteStore
) -> AsyncIterator[Sending]:
    """Send what waits in a store. `parent` handles each message."""
    ours, theirs = map(open_channel, socket.socketpair())
    channel, other = await ours, await theirs
    sending = Sending(
        folder, 0, channel, acknowledge=store.acknowledge, quarantine=store.quarantine
    )

    async def handle(message: Any) -> None:
        parent(sending, message)

    tasks = [asyncio.create_task(one) for one in (sending.run(), other.serve(handle))]
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield sending
    finally:
        channel.close()
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

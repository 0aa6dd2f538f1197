"""The serial part of a receiver, alone: receives requests over gRPC, validates them, makes them
durable in the journal, and hands them over to nobody. Prints its port.

usage: receiver_server.py FOLDER
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.receivers.grpc import GrpcReceiver
from pathgauge.collector.service.process_tuning import tune
from pathgauge.collector.service.request_queue import RequestQueue
from pathgauge.collector.store import Delivery
from pathgauge.collector.store.sqlite.store import SqliteStore


async def main() -> None:
    """Serve until killed."""
    store = SqliteStore(Path(sys.argv[1]))
    requests = RequestQueue(store, lambda: False, sys.maxsize)
    requests.resume(store.open())
    store.start(requests.deliver, time.monotonic)
    receiver = GrpcReceiver("127.0.0.1:0", requests.accept, InternalTelemetry())
    await receiver.start()
    tune()
    print(receiver.port, flush=True)
    await asyncio.to_thread(_drain, requests)


def _drain(requests: RequestQueue) -> None:
    """Take what was handed over, as the pipeline thread does."""
    while True:
        entry = requests.get(timeout=3600)
        if isinstance(entry, Delivery):
            requests.processed(entry.row, entry.at)


if __name__ == "__main__":
    asyncio.run(main())

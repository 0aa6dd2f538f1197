"""So many people look at the pages of a collector: each asks for another one every second.

Usage: readers.py http://127.0.0.1:9464 20
"""

from __future__ import annotations

import itertools
import sys
import threading
import time

import requests

PERIOD_S = 1.0
PATHS = (
    "/api/v1/summary",
    "/api/v1/results?verdict=failed",
    "/api/v1/clusters",
    "/api/v1/results?scenario=bench&limit=200",
)


def read(address: str, number: int) -> None:
    session = requests.Session()
    for path in itertools.islice(itertools.cycle(PATHS), number, None):
        began = time.monotonic()
        session.get(address + path, timeout=30)
        time.sleep(max(0.0, began + PERIOD_S - time.monotonic()))


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        threading.Thread(target=read, args=(sys.argv[1], number), daemon=True).start()
    threading.Event().wait()

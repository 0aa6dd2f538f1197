"""Waits for PostgreSQL when a process starts, so that a wrong address, password or certificate, or
a user without the rights, ends it with a reason. A process that runs waits for ever instead.
"""

from __future__ import annotations

import time
from contextlib import closing

import psycopg
import structlog

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres import rights
from pathgauge.collector.store.postgres.connection import connect

_log = structlog.get_logger(__name__)

PATIENCE_S = 30.0
_PAUSE_S = 5.0


def wait(conninfo: str, patience_s: float = PATIENCE_S) -> None:
    """Return when the database can be used. Raises `StoreError` after `patience_s` seconds, and at
    once if the user has not the rights that are needed.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with closing(connect(conninfo)) as connection:
                rights.check(connection)
        except psycopg.Error as error:
            reason, left = str(error).strip(), deadline - time.monotonic()
            if left <= 0:
                raise StoreError(
                    f"found no usable PostgreSQL within {patience_s:g} s: {reason}"
                ) from None
            _log.warning("waiting for PostgreSQL", reason=reason)
            time.sleep(min(_PAUSE_S, left))
        else:
            return

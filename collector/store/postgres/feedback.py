"""Writes what was posted to the API of a cluster. A standby may write it, too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial

import psycopg

from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.store import FeedbackOutcome, StoreError, feedback
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.messages import is_purged
from pathgauge.collector.store.postgres.schema import check


class FeedbackWriter:
    """For any thread. Each call has a connection of its own: people answer seldom."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def record(self, answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        """Make answers durable. Raises `StoreError`."""
        try:
            with closing(connect(self._conninfo)) as connection:
                check(connection)
                with connection.transaction():
                    purged = partial(is_purged, connection)
                    return feedback.record(connection, answers, time.time(), purged)
        except psycopg.Error as error:
            raise StoreError(f"postgres: feedback cannot be stored now: {error}") from error

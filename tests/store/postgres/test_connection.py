"""A connection that was cut in the middle of something is replaced, and not kept for ever."""

from __future__ import annotations

import psycopg
import pytest

from pathgauge.collector.store.postgres.connection import connect


def test_a_connection_that_stays_in_a_pipeline_is_closed(address: str) -> None:
    """As libpq leaves it if the server goes away between two statements of a pipeline."""
    connection = connect(address)
    connection.raw.execute("BEGIN")
    connection.raw.pgconn.enter_pipeline_mode()
    connection.raw.pgconn.send_query_params(b"SELECT 1", None)
    assert not connection.is_broken
    connection.rollback()
    assert connection.is_broken


def test_a_connection_that_cannot_end_its_transaction_is_closed(address: str) -> None:
    connection = connect(address)
    connection.raw.execute("BEGIN")
    connection.raw.pgconn.send_query_params(b"SELECT 1", None)
    with pytest.raises(psycopg.Error):
        connection.rollback()
    assert connection.is_broken


def test_a_connection_without_a_transaction_is_kept(address: str) -> None:
    connection = connect(address)
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.close()

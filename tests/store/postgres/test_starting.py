"""A process that starts waits for PostgreSQL, but not for ever, and says what is wrong."""

from __future__ import annotations

import threading
import time

import pytest

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres import starting
from support.ports import free_port
from support.postgres import PASSWORD, Server


def test_a_wrong_password_is_named_but_not_shown(postgres: Server) -> None:
    address = postgres.over_tcp(postgres.database())
    starting.wait(address, patience_s=0)
    with pytest.raises(StoreError) as caught:
        starting.wait(address.replace(PASSWORD, "wr0ng-word"), patience_s=0)
    assert str(caught.value).startswith("found no usable PostgreSQL within 0 s: ")
    assert 'password authentication failed for user "pathgauge"' in str(caught.value)
    assert "wr0ng-word" not in str(caught.value)


def test_without_a_server_the_start_fails_after_a_while() -> None:
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"PostgreSQL within 0\.3 s: .*refused"):
        starting.wait(f"host=127.0.0.1 port={free_port()} dbname=any", patience_s=0.3)
    assert 0.3 <= time.monotonic() - began < 5


@pytest.mark.slow
def test_the_start_waits_for_a_server_that_is_late(postgres: Server) -> None:
    address = postgres.database()
    postgres.kill()
    late = threading.Timer(1.0, postgres.start)
    late.start()
    try:
        starting.wait(address, patience_s=30)
    finally:
        late.join()

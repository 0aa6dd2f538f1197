"""A process that starts waits for PostgreSQL, but not for ever, and says what is wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres import schema, starting
from pathgauge.collector.store.postgres.connection import connect
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


@pytest.fixture
def stranger(postgres: Server, address: str) -> Iterator[str]:
    """The address of a database for a user that has not made it."""
    postgres.execute("CREATE ROLE stranger LOGIN")
    yield address.replace("pathgauge@", "stranger@")
    execute(address, "DROP OWNED BY stranger")
    postgres.execute("DROP ROLE stranger")


def execute(address: str, statement: str) -> None:
    with closing(connect(address)) as connection:
        connection.raw.execute(statement)


def refusal(address: str) -> str:
    with pytest.raises(StoreError) as caught:
        starting.wait(address, patience_s=30)
    return str(caught.value)


LACKS = "postgres: the user stranger lacks "
EXPECTED = "; expected the owner of the database and its tables"


def test_a_user_that_may_not_use_the_tables_ends_the_start_with_what_it_lacks(
    address: str, stranger: str
) -> None:
    with closing(connect(address)) as owner:
        schema.migrate(owner)
    began = time.monotonic()
    assert refusal(stranger) == (
        f"{LACKS}SELECT, INSERT, UPDATE, DELETE on pathgauge_schema, results, evidence, counts,"
        f" gauge and 16 other tables{EXPECTED}"
    )
    assert time.monotonic() - began < 5
    execute(address, "GRANT ALL ON ALL TABLES IN SCHEMA public TO stranger")
    execute(address, "REVOKE UPDATE, DELETE ON results FROM stranger")
    execute(address, "REVOKE DELETE ON counts FROM stranger")
    assert refusal(stranger) == f"{LACKS}UPDATE, DELETE on results; DELETE on counts{EXPECTED}"
    execute(address, "GRANT ALL ON ALL TABLES IN SCHEMA public TO stranger")
    starting.wait(stranger, patience_s=0)


def test_a_user_that_may_not_make_the_tables_ends_the_start_with_what_it_lacks(
    address: str, stranger: str
) -> None:
    assert refusal(stranger) == f"{LACKS}CREATE on the schema public{EXPECTED}"
    execute(address, "REVOKE USAGE ON SCHEMA public FROM PUBLIC")
    assert refusal(stranger) == f"{LACKS}USAGE on a schema of its search_path{EXPECTED}"
    execute(address, "GRANT ALL ON SCHEMA public TO stranger")
    starting.wait(stranger, patience_s=0)


def test_a_user_that_may_not_change_the_tables_of_an_earlier_version_ends_the_start(
    address: str, stranger: str
) -> None:
    with closing(connect(address)) as owner:
        schema.migrate(owner)
    execute(address, "GRANT ALL ON SCHEMA public TO stranger")
    execute(address, "GRANT ALL ON ALL TABLES IN SCHEMA public TO stranger")
    execute(address, "DELETE FROM pathgauge_schema WHERE version > 5")
    assert refusal(stranger) == (
        f"{LACKS}the ownership of pathgauge_schema, results, evidence, counts, gauge and 16 other"
        f" tables, which an earlier version has made{EXPECTED}"
    )


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

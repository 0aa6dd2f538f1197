"""What a scorer has committed for others arrives, and nobody waits for it for ever."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn
from pathgauge.collector.service.workers.messages import Forwarded, Published
from pathgauge.collector.service.workers.sending import Sending
from pathgauge.collector.store import Progress, Unread
from pathgauge.collector.store.outbox import Acknowledged
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.outgoing import sending_to

TURN = ForwardedTurn(("", "ab" * 16, "cd" * 8), void=True, target=1)


class Parent:
    """Acknowledges everything that it gets."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.got: list[tuple[str, bool]] = []
        """The kind of each row, and whether it could be read."""

    def handle(self, sending: Sending, message: Any) -> None:
        if isinstance(message, Published):
            self.waiting.append(sending.unread().number)
            self.got += [("publication", one.body != b"") for one in message.publications]
            sending.received(Acknowledged(publication=message.publications[-1].id))
        elif isinstance(message, Forwarded):
            self.got += [("turn", one.body != b"") for one in message.turns]
            sending.received(Acknowledged(forwarded=message.turns[-1].id))


async def sent(folder: Path, store: SqliteStore) -> list[tuple[str, bool]]:
    """What has arrived when everything has."""
    parent = Parent()
    async with sending_to(parent.handle, folder, store) as sending:
        await sending.finished()
        assert (parent.waiting, sending.unread()) == ([2], Unread())
    return parent.got


@pytest.mark.parametrize("table", ["publications", "forwarded"])
def test_a_damaged_last_row_is_set_aside_and_holds_up_nobody(tmp_path: Path, table: str) -> None:
    store = SqliteStore(tmp_path, part="scorer")
    store.open()
    store.start(lambda delivery: True, lambda: 0.0)
    for body in (b"one", b"two"):
        changes = Changes(forwarded=(TURN,))
        assert store.commit(Progress(0, 0.0, 0.0, changes=changes, publication=body))
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute(f"UPDATE {table} SET crc = 0 WHERE id = (SELECT max(id) FROM {table})")
        connection.commit()
        got = asyncio.run(sent(tmp_path, store))
        sources = connection.execute("SELECT source FROM quarantine").fetchall()
        [left] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert sorted(got) == sorted(
        [
            ("publication", True),
            ("publication", table != "publications"),
            ("turn", True),
            ("turn", table != "forwarded"),
        ]
    )
    assert [str(source).split()[0] for (source,) in sources] == [table]
    assert left == 1
    assert store.usage().quarantined == 1
    store.close()


def test_results_are_published_while_forwarded_turns_wait_for_a_scorer_that_is_away(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path, part="scorer")
    store.open()
    store.start(lambda delivery: True, lambda: 0.0)

    got: list[int] = []

    def commit(body: bytes) -> None:
        changes = Changes(forwarded=(TURN,))
        assert store.commit(Progress(0, 0.0, 0.0, changes=changes, publication=body))

    def read_results(sending: Sending, message: Any) -> None:
        if isinstance(message, Published):
            got.extend(one.id for one in message.publications)
            sending.received(Acknowledged(publication=got[-1]))

    async def publish() -> None:
        async with sending_to(read_results, tmp_path, store) as sending:
            for body in (b"one", b"two", b"three"):
                commit(body)
                sending.look()
                await sending.finished(forwarded=False)

    asyncio.run(publish())
    assert len(got) == 3
    store.close()

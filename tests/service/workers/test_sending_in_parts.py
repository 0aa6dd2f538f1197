"""Rows that are too large for one message."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pathgauge.collector.service.workers.messages import Published
from pathgauge.collector.service.workers.sending import Sending
from pathgauge.collector.store import Progress
from pathgauge.collector.store.outbox import Acknowledged
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.outgoing import sending_to

ROWS = 5
ROW_BYTES = 1_500_000


def test_rows_that_do_not_fit_into_one_message_follow_in_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, part="scorer")
    store.open()
    store.start(lambda delivery: True, lambda: 0.0)
    for number in range(ROWS):
        assert store.commit(Progress(0, 0.0, 0.0, publication=bytes([number]) * ROW_BYTES))
    messages = asyncio.run(sent(tmp_path, store))
    store.close()
    assert [number for message in messages for number in message] == list(range(ROWS))
    assert 1 < len(messages) < ROWS


async def sent(folder: Path, store: SqliteStore) -> list[list[int]]:
    """The rows of each message, by their first byte, when all have arrived."""
    messages: list[list[int]] = []
    is_complete = asyncio.Event()

    def handle(sending: Sending, message: object) -> None:
        assert isinstance(message, Published)
        messages.append([one.body[0] for one in message.publications])
        sending.received(Acknowledged(publication=message.publications[-1].id))
        if sum(map(len, messages)) == ROWS:
            is_complete.set()

    async with sending_to(handle, folder, store):
        await is_complete.wait()
    return messages

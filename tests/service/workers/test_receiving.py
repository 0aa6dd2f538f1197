"""Turns of other scorers are stored once, in order, and without those that nobody can read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.pipeline_events import ForwardedTurn
from pathgauge.collector.service.workers.messages import Relay
from pathgauge.collector.service.workers.receiving import store_turns
from pathgauge.collector.store import Delivery
from pathgauge.collector.store.forwarded_turns import encode
from pathgauge.collector.store.outbox import Outgoing
from pathgauge.collector.store.sqlite.store import SqliteStore

SENDER = "scorers-abc/1"
TURNS = [ForwardedTurn(("", f"{number:032x}", "cd" * 8), void=True) for number in range(3)]


def relay(first: int, *turns: ForwardedTurn | bytes) -> Relay:
    """Turns with the numbers from `first`."""
    bodies = [turn if isinstance(turn, bytes) else encode(turn) for turn in turns]
    return Relay(SENDER, [Outgoing(row, body) for row, body in enumerate(bodies, first)])


class Receiver:
    """A scorer with its store, from `start` to `stop` or a crash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.delivered: list[ForwardedTurn | None] = []
        self.dropped: list[int] = []
        self.start()

    def start(self) -> None:
        self.store = SqliteStore(self._folder, part="scorer")
        self.store.open()
        self.store.start(self._deliver, lambda: 0.0)

    def restart(self) -> None:
        self.store.close()
        self.start()

    def take(self, *relays: Relay) -> list[bool]:
        async def take() -> list[bool]:
            asked = (store_turns(one, self.store.append, self.dropped.append) for one in relays)
            return await asyncio.gather(*asked)

        return asyncio.run(take())

    def _deliver(self, delivery: Delivery) -> bool:
        self.delivered.append(delivery.batch.turn)
        return True


@pytest.fixture
def receiver(tmp_path: Path) -> Receiver:
    return Receiver(tmp_path)


def test_a_turn_that_is_relayed_again_is_stored_once(receiver: Receiver) -> None:
    """As when a process ends after the receiver's commit, before the sender has deleted it."""
    assert receiver.take(relay(1, *TURNS[:2])) == [True]
    assert receiver.take(relay(1, *TURNS[:2])) == [True]
    receiver.restart()
    assert receiver.take(relay(1, *TURNS)) == [True]
    receiver.restart()
    assert receiver.take(relay(2, *TURNS[1:]), relay(2, *TURNS[1:])) == [True, True]
    assert receiver.delivered == TURNS
    stored = list(receiver.store.read(0))
    assert [one.batch.turn for one in stored] == TURNS
    receiver.store.close()


def test_only_a_turn_that_cannot_be_read_is_dropped(receiver: Receiver) -> None:
    damaged: Sequence[bytes] = (b"", b"of another version", encode(TURNS[0])[:-3])
    assert receiver.take(relay(1, TURNS[0], *damaged, TURNS[1])) == [True]
    assert receiver.delivered == TURNS[:2]
    assert receiver.dropped == [3]
    receiver.store.close()


def test_turns_after_one_that_is_refused_are_sent_again_with_it() -> None:
    """A later one would make the refused one look as if it were stored."""
    accepted: list[ForwardedTurn | None] = []
    room = [True, False, True]

    async def accept(batch: Batch) -> bool:
        if not room.pop(0):
            return False
        await asyncio.sleep(0.01)
        accepted.append(batch.turn)
        return True

    dropped: list[int] = []
    assert not asyncio.run(store_turns(relay(1, *TURNS, b"damaged"), accept, dropped.append))
    assert accepted == TURNS[:1]
    assert dropped == []

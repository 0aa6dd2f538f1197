"""Passes turns from the scorer that has read them to the one that has their conversation.

Turns of one scorer are passed on in their order. The sender keeps them until their receiver has
stored them, and the receiver stores each once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from pathgauge.collector.service.workers.channel import ChannelClosedError
from pathgauge.collector.service.workers.messages import Received, Relay
from pathgauge.collector.service.workers.scorer_process import ScorerProcess
from pathgauge.collector.store.essential import essential_task
from pathgauge.collector.store.outbox import Acknowledged, Outgoing

_log = structlog.get_logger(__name__)

_RETRY_S = 0.5


class Relaying:
    """For the event loop of the parent."""

    def __init__(self, scorers: Sequence[ScorerProcess], name: Callable[[int], str]) -> None:
        """`name` returns the name of the store of a scorer."""
        self._scorers = scorers
        self._name = name
        self._queues: list[asyncio.Queue[Sequence[Outgoing]]] = [asyncio.Queue() for _ in scorers]
        self._tasks: list[asyncio.Task[None]] = []

    def put(self, sender: ScorerProcess, turns: Sequence[Outgoing]) -> None:
        """Pass on what a scorer has forwarded."""
        if not self._tasks:
            self._tasks = [
                essential_task(self._run(scorer), f"relaying {scorer.number}")
                for scorer in self._scorers
            ]
        self._queues[sender.number].put_nowait(turns)

    def stop(self) -> None:
        """Pass on nothing more. The senders keep it."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, sender: ScorerProcess) -> None:
        queue = self._queues[sender.number]
        while True:
            turns = await queue.get()
            for receiver in self._scorers:
                if receiver is not sender:
                    await self._pass_on(sender, receiver, turns)
            await sender.tell(Received(Acknowledged(forwarded=turns[-1].id)))

    async def _pass_on(
        self, sender: ScorerProcess, receiver: ScorerProcess, turns: Sequence[Outgoing]
    ) -> None:
        mine = [turn for turn in turns if turn.target in (None, receiver.number)]
        while mine:
            try:
                if await receiver.call(Relay(self._name(sender.number), mine)):
                    return
            except ChannelClosedError:
                pass
            except Exception:  # the receiver drops what it cannot read, so this may pass
                _log.exception("forwarded turns were refused", scorer=receiver.number)
            await asyncio.sleep(_RETRY_S)

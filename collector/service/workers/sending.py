"""Sends what a scorer has committed for others, from its store, in order.

Rows are read from the store and not passed on in memory. So a parent that was restarted gets the
same rows as one that was not.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from pathgauge.collector.service.workers.channel import Channel, ChannelClosedError
from pathgauge.collector.service.workers.messages import Forwarded, Published
from pathgauge.collector.store import Unread
from pathgauge.collector.store.outbox import Acknowledged, OutboxReader, Outgoing, Table

_log = structlog.get_logger(__name__)

_RETRY_S = 1.0
_MAX_BYTES = 4 << 20
"""Of the rows that are sent at once."""
_WINDOW = 64
"""Rows that may be on their way, of each kind: those of one must not wait for whoever gets the
others.
"""
_LAST = (1 << 63) - 1
"""The largest number of a row."""


class Sending:
    """For the event loop of the scorer."""

    def __init__(
        self,
        folder: Path,
        published: int,
        channel: Channel,
        *,
        acknowledge: Callable[[Acknowledged], None],
        quarantine: Callable[[Table, int], None],
    ) -> None:
        """`published` is the last publication that the gauge has read. `acknowledge` deletes rows
        that have arrived, `quarantine` sets a damaged one aside.
        """
        self._reader = OutboxReader(folder)
        self._channel = channel
        self._acknowledge = acknowledge
        self._quarantine = quarantine
        self._sent = self._arrived = Acknowledged(published)
        self._waiting: deque[tuple[int, float]] = deque()
        """The publications that were sent and have not arrived, with the Unix time."""
        self._changed = asyncio.Event()
        self._idle = asyncio.Condition()
        self._finishing = 0
        """Calls of `finished` that wait."""
        self._is_full = False
        """Whether rows wait for others to arrive."""
        acknowledge(self._arrived)

    def look(self) -> None:
        """There may be new rows."""
        self._changed.set()

    def received(self, acknowledged: Acknowledged) -> None:
        """The parent has stored or passed on rows up to these."""
        self._arrived = Acknowledged(*map(max, self._arrived, acknowledged))
        # After a restart, the parent may have read more than it had stored when it was told.
        self._sent = Acknowledged(*map(max, self._sent, self._arrived))
        self._acknowledge(self._arrived)
        while self._waiting and self._waiting[0][0] <= self._arrived.publication:
            self._waiting.popleft()
        if self._finishing or self._is_full:
            self._changed.set()

    def unread(self) -> Unread:
        """What the gauge has not read. Rows that were not sent yet are not part of it: there are
        some only while many others have not arrived.
        """
        oldest = self._waiting[0][1] if self._waiting else None
        return Unread(len(self._waiting), oldest)

    async def run(self) -> None:
        """Send rows until cancelled."""
        while True:
            self._changed.clear()
            try:
                more = await self._send()
            except (sqlite3.Error, OSError) as error:
                if isinstance(error, ChannelClosedError):
                    return
                _log.error("rows for others cannot be read; trying again", error=str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            if not more:
                async with self._idle:
                    self._idle.notify_all()
                await self._changed.wait()

    async def finished(self, *, forwarded: bool = True) -> None:
        """Wait until every row that is stored now has arrived. `forwarded` turns do not arrive
        while their receivers are stopping.
        """
        last = await asyncio.to_thread(self._reader.last)
        if not forwarded:
            last = last._replace(forwarded=0)
        self._finishing += 1
        try:
            self._changed.set()
            async with self._idle:
                await self._idle.wait_for(lambda: self._has_arrived(last))
        finally:
            self._finishing -= 1

    def _has_arrived(self, last: Acknowledged) -> bool:
        return (
            self._arrived.publication >= last.publication
            and self._arrived.forwarded >= last.forwarded
        )

    async def _set_aside(self, table: Table, rows: Sequence[Outgoing]) -> None:
        """Keep damaged rows for people. They are sent all the same, without their bodies, so that
        their receivers acknowledge them.
        """
        for row in rows:
            if not row.body:
                await asyncio.to_thread(self._quarantine, table, row.id)

    async def _send(self) -> bool:
        """Send some rows; returns whether others that were there already have to be sent."""
        after = Acknowledged(
            *(
                _LAST if sent - arrived >= _WINDOW else sent
                for sent, arrived in zip(self._sent, self._arrived, strict=True)
            )
        )
        self._is_full = _LAST in after
        publications, forwarded = await asyncio.to_thread(self._reader.waiting, after, _MAX_BYTES)
        await self._set_aside("publications", publications)
        await self._set_aside("forwarded", forwarded)
        if publications:
            await self._channel.tell(Published(publications))
            self._sent = self._sent._replace(publication=publications[-1].id)
            now = time.time()
            self._waiting += [(one.id, now) for one in publications]
        if forwarded:
            await self._channel.tell(Forwarded(forwarded))
            self._sent = self._sent._replace(forwarded=forwarded[-1].id)
        return any(
            sum(len(one.body) for one in rows) >= _MAX_BYTES for rows in (publications, forwarded)
        )

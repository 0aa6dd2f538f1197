"""Purges the stores of all scorer processes and that of the results, while they run.

Only the results tell which traces a selection means; the scorers hold these. What they have
published about them in the meantime is purged with the results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.service.publications import Publications
from pathgauge.collector.service.purge import total
from pathgauge.collector.service.workers import messages
from pathgauge.collector.service.workers.publication_thread import PublicationThread
from pathgauge.collector.service.workers.scorer_process import ScorerProcess, ScorerSilentError
from pathgauge.collector.store import Purged, Selection, StoreError
from pathgauge.collector.store.sqlite.store import SqliteStore


class FleetPurge:
    """Purges on demand, and finishes what was left at a restart."""

    def __init__(
        self,
        scorers: Sequence[ScorerProcess],
        store: SqliteStore,
        publications: Publications,
        thread: PublicationThread,
    ) -> None:
        """`store` is that of the results, to which `thread` writes `publications`."""
        self._scorers = scorers
        self._store = store
        self._publications = publications
        self._thread = thread

    async def purge(self, selection: Selection) -> Purged:
        """Remove everything that is selected. Raises `StoreError`."""
        if self._publications.refused is not None:
            raise StoreError(f"nothing was removed: {self._publications.refused}")
        try:
            await self._ask_all(messages.Flush())
            held: frozenset[TraceKey] = frozenset().union(*await self._ask_all(messages.Hold()))
            selected = await asyncio.to_thread(self._store.selected, selection, held)
            purge = messages.Purge(selection, selected)
            removed = await self._ask_all(purge)
            await self._ask_all(messages.Flush())
            results = await asyncio.wrap_future(
                self._thread.call(lambda: self._purge_results(selection, removed))
            )
            # The first time the publications about purged traces were still in the files.
            again = await self._ask_all(purge)
        except ScorerSilentError as error:
            text = f"{error}, so not everything was removed: purge again when /readyz is 200"
            raise StoreError(text) from error
        return total([results, *removed, *again])

    def finish(self) -> None:
        """Finish the purge of the results that an earlier process has begun."""
        self._thread.call(lambda: self._thread.withdraw(self._store.finish_purge().evaluations))

    def _purge_results(self, selection: Selection, removed: Sequence[Purged]) -> Purged:
        """In the thread of the gauge."""
        traces = frozenset().union(*(one.traces for one in removed))
        purged = self._store.purge(selection, traces)
        self._thread.withdraw(purged.evaluations.union(*(one.evaluations for one in removed)))
        return purged

    async def _ask_all(self, message: object) -> list[Any]:
        """The answers of all scorers. Raises `ScorerSilentError`."""
        asked = [asyncio.ensure_future(scorer.ask(message)) for scorer in self._scorers]
        try:
            return await asyncio.gather(*asked)
        finally:
            for one in asked:
                one.cancel()

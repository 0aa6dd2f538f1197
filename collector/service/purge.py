"""Removes telemetry from a store on disk, with or without a running collector."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.service import control_socket
from pathgauge.collector.store import (
    Progress,
    Purged,
    Restored,
    Selection,
    StoreError,
    StoreFolderError,
    StoreInUseError,
    outbox,
)
from pathgauge.collector.store.outbox import Acknowledged, OutboxReader
from pathgauge.collector.store.resharding import shape as shapes
from pathgauge.collector.store.resharding.shape import Shape
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore

_ALL = 1 << 60


def purge_store(folder: Path, selection: Selection) -> Purged:
    """Purge the store in `folder`, through its collector if one is running, with the stores of its
    scorers. Raises `StoreError`.
    """
    if not (folder / files.DATABASE).exists():
        raise StoreFolderError(f"found no store in {folder}, expected the folder of a collector")
    store = SqliteStore(folder)
    try:
        store.open()
    except StoreInUseError:
        return control_socket.ask(folder, selection)
    store.start(lambda delivery: False, time.monotonic)
    try:
        with closing(files.connect_reader(folder)) as connection:
            shape, published = shapes.in_force(connection), outbox.published(connection)
        if OutboxReader(folder).publications(0, 1):
            raise _unpublished(folder)
        if not shape.workers:
            return store.purge(selection)
        return _purge_scorers(store, folder, shape, published, selection)
    finally:
        store.close()


def _purge_scorers(
    store: SqliteStore, main: Path, shape: Shape, published: Mapping[str, int], selection: Selection
) -> Purged:
    """Purge the stores of scorers too. Only the results, which are in `store`, tell which traces
    some selections mean.
    """
    with ExitStack() as stack:
        scorers: dict[str, SqliteStore] = {}
        restored: dict[str, Restored] = {}
        for name, folder in zip(shape.names(), shape.folders(main), strict=True):
            scorers[name] = stack.enter_context(closing(SqliteStore(folder, part="scorer")))
            restored[name] = scorers[name].open()
            scorers[name].start(lambda delivery: False, time.monotonic)
        for name, scorer in scorers.items():
            acknowledged = _acknowledged(main, name, published.get(name, 0), restored)
            scorer.acknowledge(acknowledged)
            scorer.commit(Progress(restored[name].row, restored[name].at, time.time()))
        held: frozenset[TraceKey] = frozenset().union(*(one.held() for one in scorers.values()))
        selected = store.selected(selection, held)
        removed = [scorer.purge(selection, selected) for scorer in scorers.values()]
        return total([store.purge(selection), *removed])


def _acknowledged(
    main: Path, scorer: str, published: int, restored: Mapping[str, Restored]
) -> Acknowledged:
    """What a scorer has told others, who have stored it. Raises `StoreError` if there is more: what
    is purged would be published later.
    """
    waiting = OutboxReader(main / scorer)
    received = [known.received.get(scorer, 0) for name, known in restored.items() if name != scorer]
    last = waiting.last()
    by_target = {
        number: one.received.get(scorer, 0) for number, one in enumerate(restored.values())
    }
    for turn in waiting.forwarded(0, _ALL):
        reached = min(received, default=0) if turn.target is None else by_target[turn.target]
        if turn.id > reached:
            raise _unpublished(main / scorer)
    if last.publication > published:
        raise _unpublished(main / scorer)
    return last


def _unpublished(folder: Path) -> StoreError:
    return StoreError(
        f"{folder}: found results that are not published yet, expected none: start the collector,"
        " and purge while it runs"
    )


def total(purged: Sequence[Purged]) -> Purged:
    """What several stores have removed together."""
    first, *others = purged
    for one in others:
        first = replace(
            first,
            requests=first.requests + one.requests,
            results=first.results + one.results,
            damaged=first.damaged + one.damaged,
            unfinished=first.unfinished or one.unfinished,
        )
    return first

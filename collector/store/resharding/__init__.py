"""Moves the state of scorers to other stores when their number changes between two starts.

The state is what one pipeline continues with: journal, traces, turns of open conversations and
evaluations that wait for judges. It is in the main file if one process does everything, else in a
folder for each scorer. Results, evidence and counts stay in the main file.

New folders are built completely and synced. Then one transaction of the main file puts them in
force, and takes over what the old ones leave. A crash before its end leaves the old state in force,
untouched; after it the old folders are not needed any more. Either way, the next start removes what
is not in force.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import structlog

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.resharding import leftovers, purges, shape as shapes, spending
from pathgauge.collector.store.resharding.in_transit import TurnsInTransit
from pathgauge.collector.store.resharding.leftovers import left_publications
from pathgauge.collector.store.resharding.requests import RequestMover
from pathgauge.collector.store.resharding.shape import Shape
from pathgauge.collector.store.resharding.source import DamagedSourceError, Source, locked, opened
from pathgauge.collector.store.resharding.states import StateMover
from pathgauge.collector.store.resharding.target import Target, created
from pathgauge.collector.store.sqlite import damage, files, recovery
from pathgauge.scorers.types import Invocation

__all__ = ["left_publications", "reshard"]

_log = structlog.get_logger(__name__)

_STATE = ("journal", "traces", "turns", "awaited", "sessions", "session_turns")
_POSITION = "('row', 'at', 'crc', 'suspect')"


def reshard(
    folder: Path, workers: int, *, is_turn: Callable[[Invocation], bool] = lambda invocation: False
) -> Sequence[Path]:
    """The folders of the scorers, by partition; empty if `workers` is 0, when one process does
    everything with the main `folder`. State that is elsewhere is moved first.

    To be called before any of the stores is opened. `is_turn` tells whether an invocation that
    waits for judges belongs to a conversation, by the references that are active now; turns of open
    conversations are known without it. The name of a scorer in `Restored.published` and
    `Restored.received` is the end of its path: `scorers-<id>/<number>`.

    Raises `StoreError`; then the old state is in force.
    """
    with locked(folder):
        recovered: set[Path] = set()
        while True:
            try:
                return _reshard(folder, workers, is_turn)
            except DamagedSourceError as error:
                if error.folder in recovered:
                    raise StoreError(f"{error.folder}: damaged: {error.__cause__}") from error
                _recover(folder, error.folder)
                recovered.add(error.folder)
            except StoreError:
                raise
            except (sqlite3.Error, OSError) as error:
                raise StoreError(
                    f"{folder}: the state of the scorers cannot be moved: {error};"
                    f" found {files.free_bytes(folder)} bytes free"
                ) from error


def _recover(main: Path, folder: Path) -> None:
    if folder == main:  # locked already
        recovery.recover(folder)
        return
    with locked(folder):
        recovery.recover(folder)


def _reshard(folder: Path, workers: int, is_turn: Callable[[Invocation], bool]) -> Sequence[Path]:
    found = shapes.peek(folder)
    if found is not None and found.workers == workers:
        return found.folders(folder)
    with opened(folder) as main:
        shapes.remove_unused(main.connection, folder)
        shape = shapes.in_force(main.connection)
        if shape.workers != workers:
            shape = _move(main, shape, shapes.new_shape(workers), is_turn)
            shapes.remove_unused(main.connection, folder)
            _shrink(main.connection)
    return shape.folders(folder)


def _move(main: Source, old: Shape, new: Shape, is_turn: Callable[[Invocation], bool]) -> Shape:
    _log.info("moving the state of scorers", found=old.workers, wanted=new.workers)
    with ExitStack() as stack:
        scorers = []
        for name, folder in zip(old.names(), old.folders(main.folder), strict=True):
            stack.enter_context(locked(folder))
            scorers.append(stack.enter_context(opened(folder, name)))
        sources = scorers or [main]
        for source in sources:
            with _transaction(source):
                purges.finish(source.connection)
        at = max(source.at for source in [main, *scorers])
        for source in sources:
            source.shift = at - source.at
        in_transit = [
            TurnsInTransit(source, number, sources, new.partitions)
            for number, source in enumerate(sources)
        ]

        def fill(connections: Sequence[sqlite3.Connection]) -> None:
            targets = [Target(connection, at) for connection in connections]
            for one in in_transit:
                one.read()
            RequestMover(in_transit, targets, time.time()).move()
            StateMover(in_transit, targets, is_turn).move()
            known = leftovers.agent_records([main, *scorers])
            charged = spending.share(spending.spent(sources), len(targets))
            for target in targets:
                target.finish()
                leftovers.put_counts(target.connection, known | charged)

        if new.workers:
            _build(main, new, fill)
        with _transaction(main):
            if old.workers:
                leftovers.leave(main.connection, scorers)
            _clear(main.connection)
            if not new.workers:
                fill([main.connection])
            leftovers.quarantine(main.connection, sources)
            shapes.put(main.connection, new)
    return new


def _build(main: Source, new: Shape, fill: Callable[[Sequence[sqlite3.Connection]], None]) -> None:
    """Create and fill the folders of the scorers."""
    with _transaction(main):
        shapes.announce(main.connection, new)
    try:
        with ExitStack() as stack:
            fill([stack.enter_context(created(main.folder / name)) for name in new.names()])
        files.sync((main.folder / new.names()[0]).parent)
        files.sync(main.folder)
    except Exception:
        shapes.discard(main.folder, new)
        raise


def _clear(connection: sqlite3.Connection) -> None:
    for table in _STATE:
        connection.execute(f"DELETE FROM {table}")
    connection.execute(f"DELETE FROM meta WHERE name IN {_POSITION}")


@contextmanager
def _transaction(source: Source) -> Iterator[None]:
    """Raises `DamagedSourceError` if the file has to be recovered first."""
    connection = source.connection
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.DatabaseError) and damage.is_damage(error):
            raise DamagedSourceError(source.folder) from error
        raise


def _shrink(connection: sqlite3.Connection) -> None:
    """Give the space of a journal that was moved back to the file system."""
    with suppress(sqlite3.Error):
        pages, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count")
        )
        if free > pages // 2:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

"""Runs `pathgauge` with patches: `patched.py NAME,NAME serve --config ...`; without names it is
unchanged.

The patches also apply to the scorer processes that it starts: see `scorer_processes`.

Most patches are mistakes that somebody could make in the collector. A fault test must detect the
mistake that it is paired with; otherwise the test proves nothing. The other patches only make rare
events frequent.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pathgauge.collector.core.evaluations import conversation
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.pipeline_events import StoredTrace
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import Assembler
from pathgauge.collector.core.traces.journal_rows import JournalRows
from pathgauge.collector.receivers import grpc
from pathgauge.collector.service import process_limits
from pathgauge.collector.service.clock import RunningTime
from pathgauge.collector.service.memory import parts, saving
from pathgauge.collector.service.publications import Arrived, Publications
from pathgauge.collector.service.publishing import Publishing
from pathgauge.collector.service.workers.fleet import Fleet
from pathgauge.collector.service.workers.publication_thread import PublicationThread
from pathgauge.collector.service.workers.sending import Sending
from pathgauge.collector.store import Progress, Restored, counts, journal, outbox, results
from pathgauge.collector.store.outbox import Acknowledged
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.appending import Appending
from pathgauge.collector.store.sqlite.store import SqliteStore

Change = Callable[[Any, str, object], None]
"""Sets an attribute of a module or class."""


def acknowledge_before_the_commit(change: Change) -> None:
    """Acknowledge a request while it still waits for the writing thread."""
    real = SqliteStore.append

    async def late(self: SqliteStore, batch: Batch) -> bool:
        await asyncio.sleep(0.1)  # as a busy disk would make it
        return await real(self, batch)

    async def append(self: SqliteStore, batch: Batch) -> bool:
        task = asyncio.get_running_loop().create_task(late(self, batch))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return True

    change(SqliteStore, "append", append)


def do_not_sync(change: Change) -> None:
    """Commits return when the kernel has the data, not the disk."""
    change(files, "SYNCHRONOUS", "OFF")


def forget_what_was_said(change: Change) -> None:
    """After a restart it is unknown which traces were read."""
    real = SqliteStore.open

    def open(self: SqliteStore) -> Restored:
        restored = real(self)
        traces = [
            StoredTrace(replace(one.snapshot, closed_at=None, forgotten=None, completed=False), {})
            for one in restored.traces
        ]
        return replace(restored, traces=[one for one in traces if one.snapshot.rows])

    change(SqliteStore, "open", open)


def do_not_store_counts(change: Change) -> None:
    """Counts become visible but are not stored."""
    change(counts, "write", _nothing)


def store_counts_late(change: Change) -> None:
    """Counts are stored one transaction too late."""
    real, before = counts.write, list[Row]()

    def write(connection: Any, present: Iterable[Row]) -> None:
        real(connection, before)
        before[:] = present

    change(counts, "write", write)


def release_rows_early(change: Change) -> None:
    """Journal rows are deleted although an open trace needs them."""
    change(JournalRows, "take", lambda self, row: self._users.__setitem__(row, 1))


def read_everything_again(change: Change) -> None:
    """After a restart the position of the pipeline is unknown."""
    real = SqliteStore.open
    change(SqliteStore, "open", lambda self: replace(real(self), row=0))


def trust_what_is_left_of_a_damaged_store(change: Change) -> None:
    """Traces that may have lost requests are not flagged."""
    change(Assembler, "suspect", _nothing)


def acknowledge_on_a_full_disk(change: Change) -> None:
    """A request is acknowledged even if it was not stored."""
    real = SqliteStore.append

    async def append(self: SqliteStore, batch: Batch) -> bool:
        await real(self, batch)
        return True

    change(SqliteStore, "append", append)


def take_damaged_requests_for_sound(change: Change) -> None:
    """Checksums of the journal are ignored."""
    change(journal, "is_sound", lambda values: True)


def keep_every_row(change: Change) -> None:
    """Journal rows are never deleted."""
    change(JournalRows, "released", lambda self: [])


def forget_the_bound(change: Change) -> None:
    """Requests are accepted even if the store is full."""
    change(Appending, "_can_accept", lambda self, size: True)


def renumber_every_time(change: Change) -> None:
    """A turn that arrives late has all turns after it evaluated again at once."""
    change(conversation, "_back_off", _nothing)
    change(conversation, "_PASS_S", 0.0)


def keep_every_revision(change: Change) -> None:
    """Superseded revisions stay in the store."""
    change(results, "_delete_revisions", _nothing)


def never_settle(change: Change) -> None:
    """Turns keep the number that they had when they arrived."""
    change(conversation.Conversation, "compare", _nothing)
    change(conversation.Conversation, "end", lambda self: [])


def keep_everything_in_memory(change: Change) -> None:
    """All waiting requests are queued in memory."""
    change(parts, "MAX_QUEUE_BYTES_WITH_JOURNAL", 1 << 40)


def forget_the_memory_limit(change: Change) -> None:
    """The collector does not know how much memory it may use."""
    change(process_limits, "read_limits", list)
    change(saving, "save_memory", _nothing)


def refuse_without_a_delay(change: Change) -> None:
    """Refusals contain no delay."""
    change(grpc, "_retry_metadata", lambda message, retry_after: ())


def stop_at_once(change: Change) -> None:
    """SIGTERM ends the process at once."""
    real = asyncio.SelectorEventLoop.add_signal_handler

    def add_signal_handler(
        self: Any, number: int, callback: Callable[..., object], *arguments: Any
    ) -> None:
        real(
            self,
            number,
            (lambda *_: os._exit(0)) if number == signal.SIGTERM else callback,
            *arguments,
        )

    change(asyncio.SelectorEventLoop, "add_signal_handler", add_signal_handler)


def measure_ages_by_the_wall_clock(change: Change) -> None:
    """The running time follows the wall clock."""
    real = RunningTime.__init__
    change(
        RunningTime,
        "__init__",
        lambda self, start=0.0, monotonic=None: real(self, start, time.time),
    )


def take_the_clock_from_a_file(change: Change) -> None:
    """Not a mistake: the wall clock is changed by the seconds in the file `clock` beside the
    configuration.
    """
    real, file = time.time, Path(sys.argv[-1]).with_name("clock")

    def moved() -> float:
        return real() + float(file.read_text() or 0)

    change(time, "time", moved)


def checkpoint_often(change: Change) -> None:
    """Not a mistake: frequent checkpoints."""
    change(files, "WAL_PAGES", 8)


def forget_what_the_gauge_has_read(change: Change) -> None:
    """The positions of the gauge are not stored with its results."""
    real = outbox.published
    change(outbox, "published", lambda connection: dict.fromkeys(real(connection), 0))


def delete_what_was_only_sent(change: Change) -> None:
    """A scorer deletes publications that the gauge has not stored."""
    real = Sending._send

    async def send(self: Sending) -> bool:
        sent = await real(self)
        self._acknowledge(self._sent)
        return sent

    change(Sending, "_send", send)


def publish_twice(change: Change) -> None:
    """The gauge applies publications again that arrive again, as after the end of a scorer."""
    take, put = Publications.take, PublicationThread.put

    def taken(self: Publications, arrived: Arrived) -> None:
        self._published.pop(arrived.scorer, None)
        take(self, arrived)

    def put_twice(self: PublicationThread, arrived: Arrived) -> None:
        put(self, arrived)
        put(self, arrived)

    change(Publications, "take", taken)
    change(PublicationThread, "put", put_twice)


def acknowledge_turns_before_they_are_passed_on(change: Change) -> None:
    """Forwarded turns are deleted when the parent has them."""
    real = Sending._send

    async def send(self: Sending) -> bool:
        sent = await real(self)
        self._acknowledge(Acknowledged(self._arrived.publication, self._sent.forwarded))
        return sent

    change(Sending, "_send", send)


def acknowledge_a_request_of_which_a_part_is_stored(change: Change) -> None:
    """A request is acknowledged although some scorer has not stored its part."""
    real = Fleet.accept

    async def accept(self: Fleet, batch: Batch) -> bool:
        await real(self, batch)
        return True

    change(Fleet, "accept", accept)


def commit_without_a_publication(change: Change) -> None:
    """Not everything that a scorer commits is told to the gauge."""

    real = Publishing.__call__

    def publish(self: Publishing, progress: Progress) -> Progress:
        completed = real(self, progress)
        return progress if random.random() < 0.2 else completed

    change(Publishing, "__call__", publish)


PATCHES: dict[str, Callable[[Change], None]] = {
    one.__name__: one
    for one in (
        acknowledge_before_the_commit,
        do_not_sync,
        forget_what_was_said,
        do_not_store_counts,
        store_counts_late,
        release_rows_early,
        read_everything_again,
        trust_what_is_left_of_a_damaged_store,
        acknowledge_on_a_full_disk,
        take_damaged_requests_for_sound,
        keep_every_row,
        forget_the_bound,
        renumber_every_time,
        keep_every_revision,
        never_settle,
        keep_everything_in_memory,
        forget_the_memory_limit,
        refuse_without_a_delay,
        stop_at_once,
        measure_ages_by_the_wall_clock,
        take_the_clock_from_a_file,
        checkpoint_often,
        forget_what_the_gauge_has_read,
        delete_what_was_only_sent,
        publish_twice,
        acknowledge_turns_before_they_are_passed_on,
        acknowledge_a_request_of_which_a_part_is_stored,
        commit_without_a_publication,
    )
}


def _set(owner: Any, name: str, value: object) -> None:
    """Fails if the name does not exist: a patch without effect would prove nothing."""
    getattr(owner, name)
    setattr(owner, name, value)


def _nothing(*_: object) -> None:
    pass


def apply(names: str) -> None:
    """Apply the patches with these names, which commas separate."""
    for name in names.split(","):
        if name:
            PATCHES[name](_set)


def main() -> None:
    """Apply the patches, then run `pathgauge`."""
    names = sys.argv.pop(1)
    apply(names)
    os.environ |= {
        "FAULTS_PATCHES": names,
        "PYTHONPATH": str(Path(__file__).with_name("scorer_processes")),
    }
    from pathgauge.collector.cli import app  # noqa: PLC0415 (after the patches)

    app()


if __name__ == "__main__":
    main()

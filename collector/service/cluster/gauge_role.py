"""Becomes the gauge if no other process is, and publishes what all scorers have committed.

What a gauge holds in memory follows from what it has committed. So a process that becomes the gauge
again builds its sinks anew, and continues like any other one would.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import structlog

from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Withdrawn
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.publications import Arrived, Publications
from pathgauge.collector.service.sink_calls import close, publish
from pathgauge.collector.store import Progress, StoreError, Unread, Usage
from pathgauge.collector.store.essential import EssentialThread
from pathgauge.collector.store.postgres import LockLostError
from pathgauge.collector.store.postgres.connection import STATEMENT_S
from pathgauge.collector.store.postgres.gauge import GaugeDatabase
from pathgauge.collector.store.postgres.messages import Purge

_log = structlog.get_logger(__name__)

STANDBY_S = 1.0
"""How often a process asks whether it can become the gauge."""
POLL_S = 0.5
REFUSED_S = 10.0
"""How long a process that cannot read a publication leaves the role to others."""
UNREAD_S = 5.0
"""How often the publications that wait are counted."""
IDLE_COMMIT_S = 30.0
"""The longest time without a commit. Retention runs with commits."""

SILENT_S = STATEMENT_S + 15.0
"""So long nothing takes while the database answers: statements end before."""

Build = Callable[[InternalTelemetry, AgentRecords], Gauge]


class GaugeRole:
    """Whether this process is the gauge, and its work while it is."""

    def __init__(
        self,
        database: GaugeDatabase,
        telemetry: InternalTelemetry,
        build: Build,
        decode: Callable[[bytes], Publication],
    ) -> None:
        """`telemetry` counts what this process receives. `build` makes the sinks; `decode` raises
        `PublicationError` and `UnknownFormatError`.
        """
        self._database = database
        self._telemetry = telemetry
        self.counted = telemetry
        """What all scorers have counted, while this process is the gauge."""
        self._build = build
        self._decode = decode
        self.gauge: Gauge | None = None
        """Set while this process is the gauge."""
        self.takeovers = 0
        self.reason: str | None = None
        """Why nothing can be published."""
        self._is_cut_off = False
        """Whether the log says that the database cannot be used."""
        self.unread = Unread()
        """The publications that no gauge has read, also while this process is a standby."""
        self._unread_at = -math.inf
        self._commands: queue.SimpleQueue[Callable[[Gauge], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = EssentialThread(self._run, "gauge")
        self._committed_at = self._turned_at = time.monotonic()

    def usage(self) -> Usage:
        """How much the results take; for any thread."""
        return self._database.usage()

    def unready(self) -> list[str]:
        """The reasons for which this process can not publish; for any thread."""
        return self._silence() if self.reason is None else [self.reason]

    def stuck(self) -> list[str]:
        """What keeps this process from publishing; for any thread."""
        gauge = self.gauge
        return (gauge.stuck() if gauge is not None else []) or self._silence()

    def inactive(self) -> list[str]:
        """The reasons for which this process does not publish, although it could."""
        return [] if self.gauge is not None else ["standby: this process is not the gauge"]

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def call(self, command: Callable[[Gauge], None]) -> Future[None]:
        """Run `command`, which applies a reload or its failure, in the thread of the gauge; for any
        thread. While this process is not the gauge, it waits, and a later one replaces it.
        """
        answer: Future[None] = Future()

        def run(gauge: Gauge) -> None:
            if answer.set_running_or_notify_cancel():
                command(gauge)
                answer.set_result(None)

        self._commands.put(run)
        return answer

    def stop(self, timeout: float) -> bool:
        """Commit, and let another process become the gauge; `False` if that took longer than
        `timeout` seconds.
        """
        self._closed.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _silence(self) -> list[str]:
        """A connection to a server that is stopped, but not gone, has no time limit."""
        silent_s = time.monotonic() - self._turned_at
        if silent_s < SILENT_S:
            return []
        return [f"PostgreSQL has not answered for {silent_s:.0f} s"]

    def _run(self) -> None:
        while not self._closed.is_set():
            self._closed.wait(self._try())
        self._database.close()

    def _try(self) -> float:
        """Be the gauge as long as possible; returns the seconds until the next attempt. Whoever
        waits is not the gauge: another process may be it by then.
        """
        self._turned_at = time.monotonic()
        try:
            is_gauge = self._database.try_acquire()
            if is_gauge:
                self._be_gauge()
            else:
                self._count_unread()
            self._has_worked()
        except _RefusedError as error:
            # Another version may become the gauge. This one would go round in circles.
            self.reason = str(error)
            self._end()
            self._database.close()
            return REFUSED_S
        except StoreError as error:
            if not self._is_cut_off:
                _log.error("the gauge cannot use PostgreSQL; trying again", reason=str(error))
            self._is_cut_off, self.reason = True, str(error)
        except Exception:  # if the thread ended, nothing would be published any more
            _log.exception("the gauge failed and starts anew")
        finally:
            self._end()
        return STANDBY_S

    def _has_worked(self) -> None:
        if self._is_cut_off:
            _log.info("PostgreSQL can be used again")
        self._is_cut_off, self.reason = False, None

    def _be_gauge(self) -> None:
        """Publish until the process stops. Raises `LockLostError`."""
        left = self._database.restore()
        last_command = self._last_command()
        telemetry, records = self._telemetry.with_local_counters(), AgentRecords()
        gauge = self._build(telemetry, records)
        records.restore(left.counts)
        gauge.restore(left.counts, self._database.recent)
        if last_command is not None:
            last_command(gauge)
        is_lost = threading.Event()
        publications = Publications(
            gauge,
            telemetry,
            records,
            decode=self._decode,
            commit=lambda progress: self._commit(progress, is_lost),
            scorers_are="partition",
        )
        publications.resume({str(one): row for one, row in left.positions.items()})
        self.gauge, self.counted = gauge, telemetry
        self.takeovers += 1
        _log.info("this process is the gauge")
        while not is_lost.is_set():
            self._turned_at = time.monotonic()
            is_closing = self._closed.is_set()
            if is_closing:
                gauge.finish()
            found = self._publish(gauge, publications)
            if publications.refused is not None:
                raise _RefusedError(publications.refused)
            self._has_worked()
            if is_closing and not found and not gauge.needs_commit:
                return
        raise LockLostError("postgres: another process may be the gauge")

    def _publish(self, gauge: Gauge, publications: Publications) -> bool:
        """Read and commit some publications; returns whether there were any."""
        self._count_unread()
        arrived = self._database.read()
        for one in arrived.publications:
            publications.take(Arrived(str(one.partition), one.id, one.body))
        if arrived.purges:
            self._store(publications)  # most sinks get events only then
        for purge in arrived.purges:
            _withdraw(gauge, purge)
        self._run_commands(gauge)
        if gauge.needs_commit or time.monotonic() >= self._committed_at + IDLE_COMMIT_S:
            publications.begin()
        self._store(publications)
        if not arrived.publications:
            self._closed.wait(POLL_S)
        return bool(arrived.publications)

    def _store(self, publications: Publications) -> None:
        """Commit what was published. After a failure, another process continues."""
        if publications.commit(lambda: False) is not None:
            self._committed_at = time.monotonic()

    def _count_unread(self) -> None:
        if time.monotonic() >= self._unread_at + UNREAD_S:
            self.unread = self._database.unread()
            self._unread_at = time.monotonic()

    def _last_command(self) -> Callable[[Gauge], None] | None:
        """Drop the commands that nobody was there to run, but the last one. The gauge that follows
        is built with the present criteria. With earlier ones in between, it would forget what it
        knows of the scores of later ones.
        """
        last = None
        while True:
            try:
                last = self._commands.get_nowait()
            except queue.Empty:
                return last

    def _run_commands(self, gauge: Gauge) -> None:
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                return
            command(gauge)

    def _commit(self, progress: Progress, is_lost: threading.Event) -> bool:
        positions = {int(one): row for one, row in progress.published.items()}
        try:
            self._database.commit(progress.counts, positions, progress.wall)
        except StoreError:
            is_lost.set()
            raise
        return True

    def _end(self) -> None:
        """Forget everything, because another process may continue."""
        gauge, self.gauge = self.gauge, None
        if gauge is not None:
            for sink in (gauge.metrics, *gauge.sinks):
                close(sink)


class _RefusedError(Exception):
    """This version cannot read what was published."""


def _withdraw(gauge: Gauge, purge: Purge) -> None:
    for key in purge.evaluations:
        for sink in (gauge.metrics, *gauge.sinks):
            publish(sink, Withdrawn(key), time.time())

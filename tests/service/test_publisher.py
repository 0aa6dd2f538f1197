"""Between the pipeline and the store: a commit that failed is never skipped."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.store import Restored
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED

pytestmark = pytest.mark.slow


class Counts:
    """A count that changes with every event."""

    def __init__(self) -> None:
        self.count: object = 1
        self.settled = 0

    def pending(self) -> Iterable[Row]:
        return [Row(("counter", "x"), (self.count,))]

    def commit(self) -> None:
        self.settled += 1


class Process:
    """A publisher with a store on disk, and what an earlier one left there."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteStore(folder)
        self.restored: Restored = self.store.open()
        self.recent = list(self.store.recent(lambda *names: True))
        self.store.start(lambda delivery: True, time.monotonic)
        self.counts = Counts()
        pipeline = Pipeline(INSTALLED, Evaluator(()), ReferenceSet(), InternalTelemetry())
        self.publisher = Publisher(pipeline, self.store, durable_counts=[self.counts])

    def publish(self, name: str, row: int, given_up: Callable[[], bool] = lambda: False) -> None:
        outcome: PipelineEvent = Evaluation(Invocation(name, "a", "genai"), Match(), (), "idle")
        self.publisher.gather([outcome])
        self.publisher.publish(row, given_up)

    def found(self) -> tuple[list[str], int, list[list[object]]]:
        """The traces with results, the last processed journal row, and the counts."""
        return (
            sorted(recent.key[1] for recent in self.recent),
            self.restored.row,
            [list(count.state or ()) for count in self.restored.counts],
        )


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[[], Process]]:
    """Starts a process, after stopping the last one."""
    lives: list[Process] = []

    def start() -> Process:
        end()
        lives.append(Process(tmp_path))
        return lives[-1]

    def end() -> None:
        for one in lives:
            one.store.close()

    yield start
    end()


def test_after_a_commit_that_was_given_up_nothing_is_published_without_it(
    process: Callable[[], Process], tmp_path: Path
) -> None:
    stopping = process()
    stopping.publish("before", 1)
    other = sqlite3.connect(tmp_path / files.DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with capture_logs():
        stopping.publish("lost", 2, given_up=lambda: True)
    other.execute("ROLLBACK")
    other.close()
    stopping.publish("later", 3)
    assert stopping.counts.settled == 1
    assert process().found() == (["before"], 1, [[1]])


def test_what_cannot_be_committed_for_an_unforeseen_reason_is_tried_again_and_not_passed_over(
    process: Callable[[], Process],
) -> None:
    running = process()
    running.counts.count = object()
    tries = iter([False, True])
    with capture_logs() as logs:
        running.publish("lost", 1, given_up=lambda: next(tries))
    assert [entry["event"] for entry in logs] == [
        "results could not be committed, trying again"
    ] * 2
    running.counts.count = 1
    running.publish("later", 2)
    assert process().found() == ([], 0, [])


class SeveralCommits(Counts):
    """States of which one commit takes a single one."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = [Row(("state", name), (1,)) for name in "abc"]

    def pending(self) -> Iterable[Row]:
        return [self.waiting.pop()] if self.waiting else []


def test_a_stop_stores_what_needs_several_commits(process: Callable[[], Process]) -> None:
    stopping, counts = process(), SeveralCommits()
    publisher = Publisher(
        Pipeline(INSTALLED, Evaluator(()), ReferenceSet(), InternalTelemetry()),
        stopping.store,
        durable_counts=[counts],
        has_pending_counts=lambda: bool(counts.waiting),
    )
    publisher.publish_all(0, lambda: False)
    assert {count.key[1] for count in process().restored.counts} == {"a", "b", "c"}

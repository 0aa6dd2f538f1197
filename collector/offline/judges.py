"""Asks judges about replayed evaluations, one file after the other.

All files share the budget of the configuration and the cache of answers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.judging.queue import Capacity, JudgeQueue
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.scorers.judges.model_client.client import ModelClient
from pathgauge.scorers.judges.model_client.observer import Observer


class Judges:
    """The judges of a configuration, as a `JudgeAll`."""

    def __init__(
        self,
        section: Judge,
        folder: Path,
        active: ActiveConfig,
        progress: Progress,
        observer: Observer | None,
    ) -> None:
        client = ModelClient(section.settings(folder), observer)
        self.budget = client.budget
        self._evaluator = active.evaluator
        self._progress = progress
        self._asked = 0
        self._judged: list[tuple[PendingJudgment, Evaluation]] = []
        self._queue = JudgeQueue(
            client,
            self._keep,
            Capacity(section.concurrency, sys.maxsize, sys.maxsize, section.deadline),
            active.evaluator,
            active.references,
            close=client.aclose,
        )

    def __call__(
        self, pending: Iterable[PendingJudgment], references: ReferenceSet
    ) -> list[tuple[PendingJudgment, Evaluation]]:
        """Ask about all of these, and wait for the answers."""
        waiting = list(pending)
        self._judged.clear()
        self._asked = len(waiting)
        self._progress("judging", 0, self._asked)
        self._queue.configure(self._evaluator, references)
        for one in waiting:
            self._queue.take(one)
        self._queue.finish(math.inf)
        return list(self._judged)

    @contextmanager
    def running(self) -> Iterator[Judges]:
        """Can be called while the context lasts."""
        self._queue.start()
        try:
            yield self
        finally:
            self._queue.stop()

    def _keep(self, pending: PendingJudgment, evaluation: Evaluation) -> None:
        self._judged.append((pending, evaluation))
        self._progress("judging", len(self._judged), self._asked)


def judges_of(
    section: Judge,
    folder: Path,
    active: ActiveConfig,
    progress: Progress = unreported,
    observer: Observer | None = None,
) -> AbstractContextManager[Judges]:
    """Run judges while the context lasts. Their queue is not limited. `observer` learns what is
    asked and what it costs.
    """
    return Judges(section, folder, active, progress, observer).running()

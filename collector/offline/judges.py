"""Asks judges about replayed evaluations, one file after the other.

All files share the budget of the configuration and the cache of answers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.judging.queue import Capacity, JudgeQueue
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.collector.offline.tables.scoring import JudgeAll
from pathgauge.scorers.judges.model_client.client import ModelClient
from pathgauge.scorers.judges.model_client.observer import Observer


@contextmanager
def judges_of(
    section: Judge,
    folder: Path,
    active: ActiveConfig,
    progress: Progress = unreported,
    observer: Observer | None = None,
) -> Iterator[JudgeAll]:
    """Run a judge queue while the context lasts. Its size is not limited. `observer` learns what
    is asked and what it costs.
    """
    judged: list[tuple[PendingJudgment, Evaluation]] = []
    asked = 0

    def keep(pending: PendingJudgment, evaluation: Evaluation) -> None:
        judged.append((pending, evaluation))
        progress("judging", len(judged), asked)

    client = ModelClient(section.settings(folder), observer)
    queue = JudgeQueue(
        client,
        keep,
        Capacity(section.concurrency, sys.maxsize, sys.maxsize, section.deadline),
        active.evaluator,
        active.references,
        close=client.aclose,
    )

    def judge_all(
        pending: Iterable[PendingJudgment], references: ReferenceSet
    ) -> list[tuple[PendingJudgment, Evaluation]]:
        nonlocal asked
        judged.clear()
        waiting = list(pending)
        asked = len(waiting)
        progress("judging", 0, asked)
        queue.configure(active.evaluator, references)
        for one in waiting:
            queue.take(one)
        queue.finish(math.inf)
        return list(judged)

    queue.start()
    try:
        yield judge_all
    finally:
        queue.stop()

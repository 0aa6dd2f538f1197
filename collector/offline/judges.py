"""Judges of a gate: evaluations of one file after the other come in, and go out when all of them
are judged.

All files share the budgets of the configuration, and what a model answered before.
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
from pathgauge.collector.judging.queue import Capacity, JudgeQueue
from pathgauge.collector.offline.replay import JudgeAll
from pathgauge.scorers.judges.model_client.client import Asker


@contextmanager
def judges_of(section: Judge, folder: Path, setup: ActiveConfig) -> Iterator[JudgeAll]:
    """Has evaluations judged while the context lasts, all that it is given."""
    judged: list[tuple[PendingJudgment, Evaluation]] = []
    asker = Asker(section.settings(folder))
    capacity = Capacity(section.concurrency, sys.maxsize, sys.maxsize, section.deadline)
    bench = JudgeQueue(
        asker,
        lambda *told: judged.append(told),
        capacity,
        setup.evaluator,
        setup.references,
        close=asker.aclose,
    )

    def judge(awaited: Iterable[PendingJudgment]) -> list[tuple[PendingJudgment, Evaluation]]:
        judged.clear()
        for one in awaited:
            bench.take(one)
        bench.finish(math.inf)
        return list(judged)

    bench.start()
    try:
        yield judge
    finally:
        bench.stop()

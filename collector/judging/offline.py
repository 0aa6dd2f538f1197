"""Judges of a gate: evaluations of one file after the other come in, and go out when all of them are judged.

All files share the budgets of the configuration, and what a model answered before.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from collector.awaiting import Awaited
from collector.config.judging import Judge
from collector.evaluator import Evaluation
from collector.judging.bench import Bench, Capacity
from collector.offline import JudgeAll
from collector.setup import Setup
from scorers.judges.asking.asker import Asker


@contextmanager
def judges_of(section: Judge, folder: Path, setup: Setup) -> Iterator[JudgeAll]:
    """Has evaluations judged while the context lasts, all that it is given."""
    judged: list[tuple[Awaited, Evaluation]] = []
    asker = Asker(section.settings(folder))
    capacity = Capacity(section.concurrency, sys.maxsize, sys.maxsize, section.deadline)
    bench = Bench(asker, lambda *told: judged.append(told), capacity, setup.evaluator, setup.references, close=asker.aclose)

    def judge(awaited: Iterable[Awaited]) -> list[tuple[Awaited, Evaluation]]:
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

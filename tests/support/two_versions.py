"""A store with the results of two versions of an agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from pathgauge import Latency, ToolTrajectoryAvgScore
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.evaluated import WALL, commit, evaluation

CRITERION = Criterion("trajectory", ToolTrajectoryAvgScore(), 1.0)
EVALUATOR = Evaluator((CRITERION, Criterion("latency", Latency())))
_NAMES = count()


def runs(version: str, outcomes: str, **more: Any) -> Iterator[Evaluation]:
    """One for each letter: `p` passed, `f` failed."""
    for letter in outcomes:
        outcome = "passed" if letter == "p" else "failed"
        yield evaluation(f"{version} {next(_NAMES)}", outcome, version=version, **more)


def fill(store: SqliteStore, evaluations: Sequence[Evaluation], at: float = WALL) -> None:
    """Store evaluations, twenty every twenty seconds."""
    for number in range(0, len(evaluations), 20):
        commit(store, evaluations[number : number + 20], at + number)


def with_criteria(found: Sources, evaluator: Evaluator = EVALUATOR) -> Sources:
    """The sources of a collector with these criteria."""
    return replace(found, evaluator=lambda: evaluator)

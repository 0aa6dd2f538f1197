"""Counts which criteria notice which mutations: a criterion notices when its verdict becomes
`failed`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.offline.linting.mutations import KINDS, Mutant, mutants
from pathgauge.collector.offline.linting.observations import ObservedTurn
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.trajectories.adk import ToolTrajectoryAvgScore
from pathgauge.scorers.types import Invocation, Json

MAX_RUNS = 20
"""Good runs of a turn that are spoiled."""
_MAX_EXAMPLES = 3
_REFERENCE = ToolTrajectoryAvgScore()


@dataclass(slots=True)
class Row:
    """The mutations of one kind."""

    kind: str
    tried: int = 0
    allowed: int = 0
    """Of these, the runs that are still as the reference wants them, such as without an optional
    call.
    """
    noticed: int = 0
    """Of the others, those that any criterion noticed."""
    by_criterion: Counter[str] = field(default_factory=Counter)
    unnoticed: list[str] = field(default_factory=list)
    """Examples."""

    @property
    def spoiled(self) -> int:
        """The mutations that a criterion should notice."""
        return self.tried - self.allowed

    def to_json(self) -> dict[str, Json]:
        """As JSON."""
        return {
            "mutation": self.kind,
            "tried": self.tried,
            "allowed": self.allowed,
            "noticed": self.noticed,
            "by_criterion": dict(sorted(self.by_criterion.items())),
            "unnoticed": self.unnoticed,
        }


@dataclass(frozen=True, slots=True)
class MutationTable:
    """All mutations of some runs."""

    rows: Sequence[Row]
    criteria: Sequence[str]
    """Those with a threshold, in their order."""
    runs: int

    @property
    def share(self) -> float | None:
        """The share of the mutations that was noticed; `None` without mutations."""
        spoiled = sum(row.spoiled for row in self.rows)
        return sum(row.noticed for row in self.rows) / spoiled if spoiled else None


def mutation_table(observed: Iterable[ObservedTurn], evaluator: Evaluator) -> MutationTable:
    """Spoil good runs of every turn. No model is asked."""
    rows = {kind: Row(kind) for kind in KINDS}
    criteria: dict[str, None] = {}
    runs = 0
    for turn in observed:
        chosen = _chosen(turn.good)
        runs += len(chosen)
        for run in chosen:
            criteria.update(
                (result.criterion.name, None)
                for result in run.results
                if result.verdict == "passed"
            )
            for mutant in mutants(run.invocation):
                _count(rows[mutant.kind], run, mutant, evaluator)
    return MutationTable(tuple(row for row in rows.values() if row.tried), tuple(criteria), runs)


def _chosen(good: Sequence[Evaluation]) -> list[Evaluation]:
    """Runs that differ: first one of each path, then others."""
    by_path: dict[tuple[str, ...], list[Evaluation]] = {}
    seen: set[str] = set()
    for one in good:
        content = _content(one.invocation)
        if content not in seen:
            seen.add(content)
            path = tuple(tool_name(call.name) for call in one.invocation.tool_calls)
            by_path.setdefault(path, []).append(one)
    firsts = [some[0] for some in by_path.values()]
    others = [one for some in by_path.values() for one in some[1:]]
    return [*firsts, *others][:MAX_RUNS]


def _content(run: Invocation) -> str:
    calls = [(tool_name(call.name), call.arguments) for call in run.tool_calls]
    return json.dumps([calls, run.final_response], sort_keys=True, default=repr)


def _count(row: Row, run: Evaluation, mutant: Mutant, evaluator: Evaluator) -> None:
    row.tried += 1
    if not mutant.of_answer and _REFERENCE.score(mutant.invocation, run.match.turn).value == 1:
        row.allowed += 1
        return
    passed = {result.criterion.name for result in run.results if result.verdict == "passed"}
    spoiled = evaluator.evaluate(mutant.invocation, run.match)
    noticing = [
        result.criterion.name
        for result in spoiled.results
        if result.verdict == "failed" and result.criterion.name in passed
    ]
    row.by_criterion.update(noticing)
    if noticing:
        row.noticed += 1
        return
    example = f"{run.invocation.scenario_id or 'a run'}: {mutant.where}"
    if example not in row.unnoticed and len(row.unnoticed) < _MAX_EXAMPLES:
        row.unnoticed.append(example)

"""Scores tables of predictions with the evaluator that scores traces.

A table may lack the expected columns. Its rows then match the references by id or by prompt, and if
the references have neither, by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pathgauge.collector.core.documents import ConfigError, Problem
from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    EvaluationKey,
    Evaluator,
    WhenJudged,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment, PendingJudgments
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.references.rows import IDS, position_of
from pathgauge.collector.offline.tables.predictions import Predictions
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, Reference

JudgeAll = Callable[
    [Iterable[PendingJudgment], ReferenceSet], Iterable[tuple[PendingJudgment, Evaluation]]
]
"""Runs the judges, which find the expected turns in the references; returns each pending judgment
with the evaluation that has their results.
"""


def score_table(
    table: Predictions,
    evaluator: Evaluator,
    references: ReferenceSet,
    judge_all: JudgeAll | None,
) -> tuple[list[Evaluation], list[str]]:
    """The evaluations of the rows in their order, and notes for the operator. Raises `ConfigError`
    if rows have to match by position, but their number differs from that of the references.
    """
    every = ReferenceSet([*references, *table.references.values()], match_user_input=True)
    invocations, notes = _matched(table, references, every)
    judging: WhenJudged = "unconfigured" if judge_all is None else "later"
    evaluations: dict[EvaluationKey, Evaluation] = {}
    pending = PendingJudgments()
    for invocation in invocations:
        match = every.match(invocation)
        evaluation = evaluator.evaluate(invocation, match, judging=judging)
        evaluations[evaluation.key] = evaluation
        pending.update(evaluation)
    if judge_all is not None:
        for _, judged in judge_all(pending.changes()[0], every):
            known = evaluations[judged.key]
            evaluations[judged.key] = replace(known, results=(*known.results, *judged.results))
    return list(map(with_failure, evaluations.values())), notes


def _matched(
    table: Predictions, references: ReferenceSet, every: ReferenceSet
) -> tuple[list[Invocation], list[str]]:
    """The invocations, those without a way to find a reference matched by position if possible."""
    lost = [
        invocation
        for invocation in table.invocations
        if invocation.scenario_id is None and every.match(invocation).reference is None
    ]
    by_position = _by_position(references)
    if not lost or not by_position or len(lost) < len(table.invocations):
        return table.invocations, _notes(table, lost)
    file = by_position[0].source.rpartition(":")[0]
    if len(by_position) != len(lost):
        text = (
            f"found {counted(len(lost), 'row')} without an id ({', '.join(IDS)}), expected"
            f" {len(by_position)} as in {file}, because they match by position; give"
            " the rows of both files ids"
        )
        raise ConfigError([Problem(table.file, None, (), text)])
    note = (
        f"{table.file}: {counted(len(lost), 'row')} matched with {file} by position (row 1 with"
        " row 1), because they have no ids in common"
    )
    pairs = zip(table.invocations, by_position, strict=True)
    matched = [replace(row, scenario_id=reference.scenario_id) for row, reference in pairs]
    return matched, [note]


def _by_position(references: ReferenceSet) -> list[Reference]:
    """The references that were named after their position; none if they are not all the rows of one
    file, so that positions are ambiguous.
    """
    found = [reference for reference in references if position_of(reference) is not None]
    positions = [position_of(reference) for reference in found]
    return found if positions == list(range(len(found))) else []


def _notes(table: Predictions, lost: list[Invocation]) -> list[str]:
    without = [invocation for invocation in lost if invocation.user_input is None]
    if not without:
        return []
    return [
        f"{table.file}: rows that no reference can match: {len(without)}, as they have neither"
        " expected columns (reference_trajectory, reference) nor an id nor a prompt; give them and"
        " the references ids"
    ]

"""Runs trace files through the pipeline at once: paths come in, evaluations in start order with
their path go out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pathgauge.collector.config.plugins import installed_dialects
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator, WhenJudged
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Judged, Unreadable, Withdrawn
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.offline.trace_files import read_path

_UNBOUNDED = Bounds(
    max_trace_spans=sys.maxsize, max_trace_bytes=sys.maxsize, max_open_bytes=sys.maxsize
)
"""What an operator hands over in files is bounded by memory alone."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one path: the newest evaluation of every invocation, and the finished
    conversations.
    """

    source: str
    evaluations: tuple[Evaluation, ...]
    cases: tuple[ConversationResult, ...]
    notes: tuple[str, ...]
    """What was passed over or could not be read, a line each."""


JudgeAll = Callable[[Iterable[PendingJudgment]], Iterable[tuple[PendingJudgment, Evaluation]]]
"""Has evaluations judged; returns them with what judges said."""


def replay(
    paths: Iterable[Path],
    evaluator: Evaluator,
    references: ReferenceSet,
    scenario_keys: tuple[str, ...],
    judge_all: JudgeAll | None = None,
) -> Iterator[Replayed]:
    """Read and score each path on its own; without `judge_all` nobody judges.

    Raises `UnreadableFileError` and `OSError` as reading files does, `PluginError` for an installed
    dialect that cannot be used.
    """
    registry = installed_dialects()
    for path in paths:
        files = read_path(path)
        judging: WhenJudged = "unconfigured" if judge_all is None else "later"
        pipeline = Pipeline(
            evaluator,
            references,
            InternalTelemetry(),
            _UNBOUNDED,
            scenario_keys=scenario_keys,
            registry=registry,
            judging=lambda *_, judging=judging: judging,
        )
        outcomes = pipeline.feed(files.spans, files.logs, 0.0) + pipeline.read_open(0.0)
        if judge_all is not None:
            for awaited, judged in judge_all(pipeline.changes().awaited):
                outcomes += pipeline.judged(awaited, judged)
        outcomes += pipeline.finish_conversations()
        newest: dict[tuple[str, str, str], Evaluation] = {}
        notes = list(files.notes)
        for outcome in outcomes:
            if isinstance(outcome, Evaluation):
                newest[outcome.key] = outcome
            elif isinstance(outcome, Judged):
                newest[outcome.evaluation.key] = _completed(
                    newest[outcome.evaluation.key], outcome.evaluation
                )
            elif isinstance(outcome, Withdrawn):
                newest.pop(outcome.key, None)
            elif isinstance(outcome, Unreadable):
                notes.append(
                    f"{path}: trace {outcome.trace_id} could not be read: {outcome.error!r}"
                )
        if not newest:
            notes.append(
                f"{path}: found no agent invocation in {len(files.spans)} spans and"
                f" {len(files.logs)} log records"
            )
        ordered = sorted(
            newest.values(), key=lambda e: (e.invocation.start_ns or 0, e.invocation.span_id)
        )
        yield Replayed(
            str(path),
            tuple(ordered),
            tuple(case for case in outcomes if isinstance(case, ConversationResult)),
            tuple(notes),
        )


def _completed(evaluation: Evaluation, judged: Evaluation) -> Evaluation:
    """The evaluation with what judges said of it."""
    return replace(evaluation, results=(*evaluation.results, *judged.results))

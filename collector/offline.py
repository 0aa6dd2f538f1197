"""Runs trace files through the pipeline at once: paths come in, evaluations in start order with their path go out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from collector.assembler import Bounds
from collector.conversations import Case
from collector.evaluator import Evaluation, Evaluator
from collector.outcomes import Unreadable, Withdrawn
from collector.pipeline import Pipeline
from collector.plugins import installed_dialects
from collector.receivers.files import read_path
from collector.references import ReferenceSet
from collector.telemetry import Ledger

_UNBOUNDED = Bounds(max_trace_spans=sys.maxsize, max_trace_bytes=sys.maxsize, max_open_bytes=sys.maxsize)
"""What an operator hands over in files is bounded by memory alone."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one path: the newest evaluation of every invocation, and the finished conversations."""

    source: str
    evaluations: tuple[Evaluation, ...]
    cases: tuple[Case, ...]
    notes: tuple[str, ...]
    """What was passed over or could not be read, a line each."""


def replay(paths: Iterable[Path], evaluator: Evaluator, references: ReferenceSet, scenario_keys: tuple[str, ...]) -> Iterator[Replayed]:
    """Read and score each path on its own.

    Raises `UnreadableFileError` and `OSError` as reading files does, `PluginError` for an installed dialect that cannot be used.
    """
    registry = installed_dialects()
    for path in paths:
        files = read_path(path)
        pipeline = Pipeline(evaluator, references, Ledger(), _UNBOUNDED, scenario_keys=scenario_keys, registry=registry)
        outcomes = pipeline.feed(files.spans, files.logs, 0.0) + pipeline.drain(0.0)
        newest: dict[tuple[str, str, str], Evaluation] = {}
        notes = list(files.notes)
        for outcome in outcomes:
            if isinstance(outcome, Evaluation):
                newest[outcome.key] = outcome
            elif isinstance(outcome, Withdrawn):
                newest.pop(outcome.key, None)
            elif isinstance(outcome, Unreadable):
                notes.append(f"{path}: trace {outcome.trace_id} could not be read: {outcome.error!r}")
        if not newest:
            notes.append(f"{path}: found no agent invocation in {len(files.spans)} spans and {len(files.logs)} log records")
        ordered = sorted(newest.values(), key=lambda e: (e.invocation.start_ns or 0, e.invocation.span_id))
        yield Replayed(str(path), tuple(ordered), tuple(case for case in outcomes if isinstance(case, Case)), tuple(notes))

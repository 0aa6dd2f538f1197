"""Runs trace files through the pipeline at once, without a service. Tables of predictions go past
it: their rows already are invocations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from pathgauge.collector.config.plugins.dialects import installed_dialects
from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    EvaluationKey,
    Evaluator,
    WhenJudged,
)
from pathgauge.collector.core.evaluations.scorer_watch import ScorerWatch
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations.dialects import Dialect, Registry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    FeedbackGiven,
    Judged,
    PipelineEvent,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.sessions.session import SessionBounds
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.collector.offline.scorer_failures import ScorerFailures
from pathgauge.collector.offline.tables.scoring import JudgeAll, score_table
from pathgauge.collector.offline.trace_files import TraceFiles, read_path, shown
from pathgauge.collector.offline.without_agent import without_agent
from pathgauge.scorers.matching.wording import counted

_UNBOUNDED = Bounds(
    max_trace_spans=sys.maxsize, max_trace_bytes=sys.maxsize, max_open_bytes=sys.maxsize
)
"""Files come from the operator, so only memory limits them."""

ONE_SESSION = SessionBounds(max_turns=sys.maxsize, max_session_bytes=sys.maxsize)
"""All turns of a conversation in one path are one session."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result for one path. Evaluations are the newest of each invocation, in start order."""

    source: str
    evaluations: tuple[Evaluation, ...]
    conversations: tuple[ConversationResult, ...]
    notes: tuple[str, ...]
    """What was skipped or could not be read, one line each."""
    answers: tuple[Answer, ...] = ()
    """What people said of the runs."""
    incomplete: tuple[str, ...] = ()
    """Those of the notes that say what could not be read of a trace: an invocation may be missing.
    """
    traces: frozenset[tuple[str, str]] = frozenset()
    """Tenant and trace id of everything that was read, also of traces without an invocation."""


def replay(
    paths: Iterable[Path],
    evaluator: Evaluator,
    references: ReferenceSet,
    scenario_keys: tuple[str, ...],
    judge_all: JudgeAll | None = None,
    *,
    progress: Progress = unreported,
    dialects: Iterable[Dialect] = (),
) -> Iterator[Replayed]:
    """Read and score each path on its own. Without `judge_all` no judge is asked. `dialects`: those
    of the configuration.

    Raises `UnreadableFileError`, `ConfigError` or `OSError` for a file, and `PluginError` for an
    installed dialect that cannot be used.
    """
    registry = installed_dialects(dialects)
    paths = list(paths)
    for number, path in enumerate(paths):
        progress(f"reading {shown(path)}", number, len(paths))
        files = read_path(path)
        progress(f"scoring {shown(path)}", number, len(paths))
        with chdir(os.curdir):  # a scorer may change it, and the next path may be relative
            replayed = replay_files(
                files,
                path,
                evaluator,
                references,
                scenario_keys,
                judge_all=judge_all,
                registry=registry,
            )
        yield replayed


def replay_files(
    files: TraceFiles,
    path: Path,
    evaluator: Evaluator,
    references: ReferenceSet,
    scenario_keys: tuple[str, ...],
    *,
    judge_all: JudgeAll | None = None,
    registry: Registry | None = None,
) -> Replayed:
    """Score what was read from `path`, which only names it. `registry`: the dialects, by default
    all installed ones. Raises as `replay` does.
    """
    judging: WhenJudged = "unconfigured" if judge_all is None else "later"
    telemetry = InternalTelemetry()
    registry = registry or installed_dialects()
    failures = ScorerFailures()
    pipeline = Pipeline(
        registry,
        evaluator,
        references,
        telemetry,
        _UNBOUNDED,
        scenario_keys=scenario_keys,
        judging=lambda *_: judging,
        max_conversation_bytes=sys.maxsize,
        session_bounds=ONE_SESSION,
        watch=ScorerWatch(failures),
    )
    events = pipeline.feed(files.spans, files.logs, 0.0) + pipeline.read_open(0.0)
    events += _judged(pipeline, references, judge_all)
    events += pipeline.finish_conversations()
    events += _judged(pipeline, references, judge_all)  # sessions that have ended now
    evaluations = _newest(events)
    unreadable = list(_unreadable(path, events))
    notes = [*files.notes, *unreadable, *_unread(path, telemetry), *failures.notes()]
    known = {one.invocation.trace_id for one in evaluations}
    known.update(event.trace_id for event in events if isinstance(event, Unreadable))
    lost = without_agent(files.spans, known, registry)
    notes += [f"{shown(path)}: {note}" for note in lost]
    for table in files.tables:
        scored, more = score_table(table, evaluator, references, judge_all)
        evaluations += tuple(scored)
        notes += more
    if not evaluations:
        notes.append(f"{shown(path)}: found no agent invocation in {_counts(files)}")
    conversations = tuple(event for event in events if isinstance(event, ConversationResult))
    answers = tuple(event.answer for event in events if isinstance(event, FeedbackGiven))
    records: Iterable[Span | LogRecord] = chain(files.spans, files.logs)
    traces = frozenset((one.tenant, one.trace_id) for one in records)
    return Replayed(
        str(path),
        evaluations,
        conversations,
        tuple(notes),
        answers,
        (*files.incomplete, *unreadable),
        traces,
    )


def _judged(
    pipeline: Pipeline, references: ReferenceSet, judge_all: JudgeAll | None
) -> Iterator[PipelineEvent]:
    if judge_all is not None:
        for pending, judged in judge_all(pipeline.changes().judgments_begun, references):
            yield from pipeline.judged(pending, judged)


def _unread(path: Path, telemetry: InternalTelemetry) -> Iterator[str]:
    for (scope,), spans in telemetry.unread_scopes.items():
        yield (
            f"{shown(path)}: no dialect understands {counted(spans, 'span')} of the scope"
            f" {scope!r}, about agents, models or tools"
        )


def _counts(files: TraceFiles) -> str:
    if files.tables and not files.spans and not files.logs:
        return "a table without rows"
    return f"{counted(len(files.spans), 'span')} and {counted(len(files.logs), 'log record')}"


def _newest(events: Iterable[PipelineEvent]) -> tuple[Evaluation, ...]:
    """The newest evaluation of each invocation, judges included, by start time."""
    newest: dict[EvaluationKey, Evaluation] = {}
    for event in events:
        match event:
            case Evaluation():
                newest[event.key] = event
            case Judged(evaluation=judged):
                known = newest[judged.key]
                results = (*known.results, *judged.results)
                newest[judged.key] = with_failure(replace(known, results=results))
            case Withdrawn(key=key):
                newest.pop(key, None)
    return tuple(sorted(newest.values(), key=_start))


def _start(evaluation: Evaluation) -> tuple[int, str]:
    return evaluation.invocation.start_ns or 0, evaluation.invocation.span_id


def _unreadable(path: Path, events: Iterable[PipelineEvent]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Unreadable):
            known = isinstance(event.error, PluginError)
            error = str(event.error) if known else repr(event.error)
            yield f"{shown(path)}: trace {event.trace_id} could not be read: {error}"

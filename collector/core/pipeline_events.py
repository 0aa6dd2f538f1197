"""What the pipeline says: values that come out of it, one type for each thing that may have
happened.

`PipelineEvent`s go to the sinks, `Changes` with them to the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.traces import TraceSnapshot


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An evaluation is void, as what it judged proved to be a part of a larger invocation. `key` is
    the evaluation's.
    """

    key: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A trace that no dialect could read without an error; its invocations are lost, its neighbours
    are not.
    """

    trace_id: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Judged:
    """What judges said of an evaluation that was told before: `evaluation.results` has theirs
    alone.
    """

    evaluation: Evaluation
    first: bool
    """Whether this is the first time that they say something of it, so that it counts."""


Told = Evaluation | Judged | Withdrawn | ConversationResult
"""What sinks and the store are told."""

PipelineEvent = Told | Unreadable

Fingerprints = Mapping[str, tuple[str, int]]
"""What was said of the invocations of a trace, by anchor: a digest of the content, and the
revision.
"""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What has to outlive the process of one trace, so that after a restart nothing is said twice."""

    standing: TraceSnapshot
    fingerprints: Fingerprints


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the last time; it belongs into one transaction with the outcomes."""

    traces: tuple[Remembered, ...] = ()
    released: tuple[int, ...] = ()
    """Journal rows that are not needed any more."""
    dropped_turns: tuple[tuple[str, str, str], ...] = ()
    """Turns that were stored for conversations which have no reference any more, by tenant, trace
    id and anchor.
    """
    awaited: tuple[PendingJudgment, ...] = ()
    """Evaluations that wait for judges from now on."""
    settled: tuple[EvaluationKey, ...] = ()
    """Evaluations that wait no longer."""

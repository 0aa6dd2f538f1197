"""What a sink is: the way out of the collector for evaluations."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.pipeline_events import Judged


@runtime_checkable
class Sink(Protocol):
    """Takes evaluations to where they are used.

    One thread makes all calls, the thread that scores, so no call may wait for a network.
    """

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Publish an evaluation; `now` is in Unix seconds.

        A higher `revision` replaces the evaluation with the same key.
        """
        ...

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Publish the results of judges for an evaluation that was published before.

        `judged.evaluation` holds only these results.
        """
        ...

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Publish the scores of a finished conversation. Its turns were published before."""
        ...

    def withdraw(self, key: EvaluationKey) -> None:
        """Take an evaluation back: its invocation proved to be part of a larger one.

        Unknown keys are no error.
        """
        ...

    def close(self) -> None:
        """Publish what is still held. Called once or twice."""
        ...


@runtime_checkable
class QueuedSink(Sink, Protocol):
    """A sink with a bounded queue and a thread of its own; gauges show how full the queue is."""

    queue_name: str
    """The label value of its queue."""
    queue_size: int
    """Entries that fit."""

    @property
    def waiting(self) -> int:
        """Entries in the queue. Read from any thread."""
        ...

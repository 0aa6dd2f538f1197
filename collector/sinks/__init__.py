"""The ways out: each sink is told of every evaluation and of every finished conversation."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.pipeline_events import Judged


@runtime_checkable
class Sink(Protocol):
    """Where evaluations go. All calls come from one thread, and none may block on a network."""

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Take an evaluation in; `now` is in Unix seconds. One with a higher revision replaces the
        one with the same key.
        """
        ...

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Take in what judges said of an evaluation that was published before; its results are
        theirs alone.
        """
        ...

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        """Take in the scores of a finished conversation, whose turns were published one by one
        before.
        """
        ...

    def withdraw(self, key: EvaluationKey) -> None:
        """Take back the evaluation `key`: a larger invocation appeared around it. An unknown key is
        no error.
        """
        ...

    def close(self) -> None:
        """Bring out what is still held. Safe to call twice."""
        ...

"""Sends evaluated turns to the partition that has the sessions of their conversation.

A turn keeps its evaluation in the partition of its trace. Only a copy leaves, with its scores, and
leaves again when they change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.partitioning import Partition, partition_of_session
from pathgauge.collector.core.pipeline_events import ForwardedTurn, SessionNews
from pathgauge.collector.core.sessions.session import KeptTurn


class SessionForwarding:
    """The copies of turns that leave one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._leaving: list[ForwardedTurn] = []

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return bool(self._leaving)

    def forward(self, turn: KeptTurn, conversation: str | None) -> bool:
        """Forward a turn if another partition has the sessions of its conversation; `False` if this
        one has them, or there is no conversation. A revision may have left another conversation.
        """
        if turn.revision and self._partition.total > 1:
            news = SessionNews(conversation)
            self._leaving.append(ForwardedTurn(turn.key, revision=turn.revision, session=news))
        owner = self._owner(turn.key, conversation)
        if owner is None or conversation is None:
            return False
        self._leaving.append(
            ForwardedTurn(
                turn.key,
                turn.invocation,
                revision=turn.revision,
                target=owner,
                session=SessionNews(conversation, turn.scores),
                at=turn.at,
            )
        )
        return True

    def add_scores(
        self,
        key: EvaluationKey,
        revision: int,
        conversation: str | None,
        scores: Mapping[str, float | None],
    ) -> bool:
        """Forward scores of judges, as `forward` does."""
        owner = self._owner(key, conversation)
        if owner is None:
            return False
        news = SessionNews(conversation, scores)
        self._leaving.append(ForwardedTurn(key, revision=revision, target=owner, session=news))
        return True

    def withdraw(self, key: EvaluationKey, of_sessions: bool) -> None:
        """Tell the others that a turn is none any more."""
        if of_sessions and self._partition.total > 1:
            self._leaving.append(ForwardedTurn(key, session=SessionNews(None)))

    def changes(self) -> Sequence[ForwardedTurn]:
        """What left since the last call."""
        leaving, self._leaving = self._leaving, []
        return leaving

    def _owner(self, key: EvaluationKey, conversation: str | None) -> int | None:
        """The other partition that has the sessions of a conversation."""
        if conversation is None:
            return None
        owner = partition_of_session(key[0], conversation, self._partition.total)
        return None if owner == self._partition.number else owner

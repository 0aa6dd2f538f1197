"""Sends turns of conversations to the partition that scores them.

A trace belongs to the partition of its id, a conversation to that of its tenant, id and scenario,
which are known only when the trace was read. So a turn may have to be numbered and scored by
another scorer than the one that has read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pathgauge.collector.core.evaluations.conversation import ConversationKey
from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.partitioning import Partition, partition_of_conversation
from pathgauge.collector.core.pipeline_events import ForwardedTurn


class Forwarding:
    """The turns that leave one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._leaving: list[ForwardedTurn] = []

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return bool(self._leaving)

    def is_foreign(self, key: ConversationKey) -> bool:
        """Whether another partition has this conversation."""
        return self._owner(key) != self._partition.number

    def forward(self, turn: ForwardedTurn, key: ConversationKey) -> None:
        """Forward a turn of the conversation `key`."""
        self._leaving.append(replace(turn, target=self._owner(key)))

    def withdraw(self, key: EvaluationKey, *, void: bool) -> None:
        """Tell the others that a turn that was forwarded is none any more."""
        self._leaving.append(ForwardedTurn(key, void=void))

    def changes(self) -> Sequence[ForwardedTurn]:
        """What was forwarded since the last call."""
        leaving, self._leaving = self._leaving, []
        return leaving

    def _owner(self, key: ConversationKey) -> int:
        return partition_of_conversation(key, self._partition.total)

"""The open conversations by their keys, and the one that has been quiet longest.

Turns that other partitions have read arrive in any order of the times at which they were read. So
the order of the conversations changes only when somebody asks for the first one: a place in it may
be too early, and is corrected then.
"""

from __future__ import annotations

import heapq

from pathgauge.collector.core.evaluations.conversation import Conversation, ConversationKey
from pathgauge.scorers.types import Reference


class OpenConversations:
    """Times are those of conversations, except `now`, which is that of the partition."""

    def __init__(self) -> None:
        self._by_key: dict[ConversationKey, Conversation] = {}
        self._places: list[tuple[float, int, ConversationKey]] = []
        """Of each conversation one: the time of its newest turn, or of an earlier one."""
        self._touched = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def __getitem__(self, key: ConversationKey) -> Conversation:
        return self._by_key[key]

    def get(self, key: ConversationKey) -> Conversation | None:
        """An open conversation."""
        return self._by_key.get(key)

    def go_on(
        self, key: ConversationKey, reference: Reference, now: float, at: float
    ) -> Conversation:
        """The conversation of a turn that arrives `now` and was read `at`; a new one, if none is
        open.
        """
        self._touched += 1
        conversation = self._by_key.get(key)
        if conversation is None:
            conversation = self._by_key[key] = Conversation(reference, now)
            heapq.heappush(self._places, (at, self._touched, key))
        conversation.reference, conversation.arrived = reference, now
        if at >= conversation.last:
            conversation.last, conversation.touched = at, self._touched
        return conversation

    def quietest(self) -> Conversation | None:
        """The conversation whose newest turn was read first."""
        while self._places:
            _, touched, key = self._places[0]
            conversation = self._by_key[key]
            if touched == conversation.touched:
                return conversation
            heapq.heapreplace(self._places, (conversation.last, conversation.touched, key))
        return None

    def end_quietest(self) -> tuple[ConversationKey, Conversation]:
        """Remove what `quietest` has returned."""
        *_, key = heapq.heappop(self._places)
        return key, self._by_key.pop(key)

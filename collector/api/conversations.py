"""The turns of a conversation that are stored near one of its turns.

Results have no column for the conversation; it is in the evidence. So only a bounded number of
results of the same agent and scenario is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evidence.evidence import Evidence
from pathgauge.collector.store.evidence import table as evidence_rows
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.results import find
from pathgauge.collector.store.queries.stored_result import StoredResult

MAX_LOOKED_AT = 100
_ROWS_AFTER = 1_000
"""Later results of all agents among which later turns are found."""
_SECONDS_BEFORE = 3_600.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn."""

    index: int | None
    """From 0, by the reference or else by the telemetry; `None` if these number no two turns
    differently.
    """
    result: StoredResult
    user_input: str | None


def turns(sources: Sources, stored: StoredResult, evidence: Evidence) -> Sequence[Turn]:
    """The turns of the same conversation with evidence, this one included, in the order of time;
    none without a conversation.
    """
    conversation = evidence.invocation.conversation_id
    if conversation is None or sources.reading is None:
        return []
    wanted = Filter(
        tenant=stored.tenant,
        agent=stored.agent or "",
        scenario=stored.scenario_id or "",
        since=stored.at - _SECONDS_BEFORE,
    )
    with sources.reading() as connection:
        page = find(connection, wanted, MAX_LOOKED_AT, stored.row + _ROWS_AFTER)
        near = [
            (one, evidence if one.key == stored.key else evidence_rows.find(connection, one.key))
            for one in page.results
        ]
    own = [
        (result, one)
        for result, one in near
        if one is not None and one.invocation.conversation_id == conversation
    ]
    numbers = [one.invocation.turn if one.turn_index is None else one.turn_index for _, one in own]
    is_numbered = len(set(numbers)) > 1  # each turn may have the single turn of its reference
    found = [
        Turn(number if is_numbered else None, result, one.invocation.user_input)
        for number, (result, one) in zip(numbers, own, strict=True)
    ]
    return sorted(found, key=lambda turn: turn.result.row)

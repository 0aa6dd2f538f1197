"""Sessions in PostgreSQL: the next scorer of a partition continues them, a purge removes them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from pathgauge.collector.core.evaluations.evaluator import Evaluation, SessionResult
from pathgauge.collector.core.pipeline_events import Changes
from pathgauge.collector.core.sessions.session import KeptTurn, Session, result_key
from pathgauge.collector.core.sessions.stored_session import SessionChanges, StoredSession
from pathgauge.collector.store import Selection
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.purge import purge
from support.evaluated import WALL, evaluation
from support.shared_database import rows, scorer, step

FIRST, SECOND, OTHER = evaluation("first", scenario="secret"), evaluation("second"), evaluation("o")
SELECTIONS = [
    Selection(trace_id=FIRST.invocation.trace_id),
    Selection(scenario="secret"),
    Selection(before=WALL + 50),
]


def session(name: str, *turns: Evaluation) -> StoredSession:
    kept = [KeptTurn(replace(one.invocation, conversation_id=name), 0, 1.0, {}) for one in turns]
    found = Session("", name, f"{name:0<32}", 1.0, 2.0, 0, "idle")
    return StoredSession(found, tuple(kept))


def result(stored: StoredSession) -> Evaluation:
    _, trace_id, span_id = result_key(stored.session.key)
    members = tuple((one.key[1], one.key[2]) for one in stored.turns)
    whole = replace(
        SECOND.invocation, trace_id=trace_id, span_id=span_id, dialect="session", tenant=""
    )
    return replace(SECOND, invocation=whole, session=SessionResult("idle", members))


AFFECTED, UNAFFECTED = session("a", FIRST, SECOND), session("b", OTHER)


@pytest.fixture
def filled(address: str) -> str:
    with scorer(address) as database:
        for row, stored in enumerate((AFFECTED, UNAFFECTED), 1):
            wall = WALL + 100 * (row - 1)
            changes = SessionChanges(
                (stored.session,), tuple((stored.session.id, one) for one in stored.turns)
            )
            events = [FIRST, SECOND] if row == 1 else [OTHER]
            committed = step(
                row, [*events, result(stored)], changes=Changes(sessions=changes), wall=wall
            )
            assert database.commit(committed)
    return address


def test_the_next_scorer_of_a_partition_continues_its_sessions(filled: str) -> None:
    with closing(PartitionDatabase(filled, 0)) as database:
        restored = {one.session.id: one for one in database.claim("next").restored.sessions}
    for stored in (AFFECTED, UNAFFECTED):
        found = restored[stored.session.id]
        assert replace(found.session, turns={}) == stored.session
        assert {one.key for one in found.turns} == {one.key for one in stored.turns}


@pytest.mark.parametrize("selection", SELECTIONS, ids=["trace", "scenario", "time"])
def test_a_purge_of_one_turn_removes_its_session_and_the_result(
    filled: str, selection: Selection
) -> None:
    purged = purge(filled, selection, 0.0)
    assert AFFECTED.session.key in purged.traces
    assert result(AFFECTED).key in purged.evaluations
    name = UNAFFECTED.session.id
    assert rows(filled, "SELECT trace_id FROM sessions") == [(name,)]
    assert rows(filled, "SELECT DISTINCT session FROM session_turns") == [(name,)]
    assert rows(filled, "SELECT DISTINCT session FROM session_members") == [(name,)]
    left = rows(filled, "SELECT trace_id FROM results")
    assert (name,) in left
    assert (AFFECTED.session.id,) not in left

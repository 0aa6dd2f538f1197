"""What is kept of the turns of sessions, and what is forgotten."""

from __future__ import annotations

from dataclasses import replace

from pathgauge.collector.core.sessions.session import KeptTurn, SessionBounds
from pathgauge.collector.core.sessions.session_scoring import whole_of
from pathgauge.collector.core.sessions.sessions import Sessions
from pathgauge.collector.core.sessions.stored_session import StoredSession
from pathgauge.scorers.authoring.extras import SpanRecord
from pathgauge.scorers.types import Invocation

FIRST = Invocation("1" * 32, "1" * 16, "otel", conversation_id="a", start_ns=5)
SECOND = replace(FIRST, trace_id="2" * 32, start_ns=3)


def kept(sessions: Sessions) -> list[KeptTurn]:
    """All turns that are kept, in order."""
    return [turn for ended, _ in sessions.drain(99.0) for turn in ended.ordered()]


def test_turns_are_in_the_order_of_their_start() -> None:
    sessions = Sessions()
    for one in (FIRST, SECOND):
        sessions.place(KeptTurn(one, 0, 1.0), 1.0)
    assert [turn.invocation.start_ns for turn in kept(sessions)] == [3, 5]


def test_scores_of_judges_are_added_to_their_revision_only() -> None:
    sessions = Sessions()
    sessions.place(KeptTurn(FIRST, 0, 1.0, {"f1": 0.5}), 1.0)
    sessions.add_scores(KeptTurn(FIRST, 0, 1.0).key, 0, {"safe": 1.0}, 2.0)
    sessions.place(KeptTurn(FIRST, 1, 3.0, {"f1": 1.0}), 3.0)
    sessions.add_scores(KeptTurn(FIRST, 0, 1.0).key, 0, {"safe": 0.0}, 4.0)
    [turn] = kept(sessions)
    assert (turn.revision, turn.at, turn.scores) == (1, 1.0, {"f1": 1.0})


def test_an_earlier_revision_does_not_replace_a_later_one() -> None:
    sessions = Sessions()
    sessions.place(KeptTurn(FIRST, 0, 1.0), 1.0)
    sessions.place(KeptTurn(FIRST, 2, 2.0, {"f1": 1.0}), 2.0)
    sessions.place(KeptTurn(FIRST, 1, 3.0, {"f1": 0.0}), 3.0)
    [turn] = kept(sessions)
    assert (turn.revision, turn.scores) == (2, {"f1": 1.0})


def test_spans_and_schemas_are_not_kept() -> None:
    sessions = Sessions()
    span = SpanRecord("s", None, "chat")
    large = replace(FIRST, spans=(span,), tool_schemas={"t": {"type": "object"}})
    sessions.place(KeptTurn(large, 0, 1.0), 1.0)
    [turn] = kept(sessions)
    assert turn.invocation == FIRST


def test_a_purge_forgets_a_session_by_its_own_id_and_by_those_of_its_traces() -> None:
    for by_trace in (True, False):
        sessions = Sessions(SessionBounds(idle=10.0))
        sessions.place(KeptTurn(FIRST, 0, 1.0), 1.0)
        sessions.place(KeptTurn(replace(SECOND, conversation_id="b"), 0, 1.0), 1.0)
        [purged, other] = sessions.changes().sessions
        sessions.discard({("", FIRST.trace_id) if by_trace else purged.key})
        assert [ended.id for ended, _ in sessions.expire(99.0)] == [other.id]
        changes = sessions.changes()
        assert changes.forgotten == ()  # the store has deleted it
        assert changes.removed_turns == ()


def test_a_turn_that_left_its_session_is_not_removed_again_after_a_purge() -> None:
    sessions = Sessions()
    for one in (FIRST, SECOND):
        sessions.place(KeptTurn(one, 0, 1.0), 1.0)
    sessions.withdraw(KeptTurn(FIRST, 0, 1.0).key, 2.0)
    sessions.discard({("", FIRST.trace_id)})
    assert sessions.changes().removed_turns == ()
    [turn] = kept(sessions)
    assert turn.invocation == SECOND


def test_long_names_of_conversations_count_as_memory() -> None:
    def size(name: str) -> int:
        sessions = Sessions()
        sessions.place(KeptTurn(replace(FIRST, conversation_id=name), 0, 1.0), 1.0)
        return sessions.size

    assert size("a" * 10_000) - size("a") > 20_000


def test_names_that_no_database_stores_are_the_same_after_a_restart() -> None:
    odd = replace(FIRST, conversation_id="a\0\ud800")
    sessions = Sessions()
    sessions.place(KeptTurn(odd, 0, 1.0), 1.0)
    [session] = sessions.changes().sessions
    assert session.conversation == "a?"
    again = Sessions()
    again.restore(StoredSession(session, (KeptTurn(odd, 0, 1.0),)))
    again.place(KeptTurn(replace(odd, trace_id="2" * 32), 0, 2.0), 2.0)
    assert len(kept(again)) == 2


def test_the_whole_session_knows_what_its_turns_agree_about() -> None:
    first = replace(
        FIRST,
        agent="desk",
        agent_version="2",
        scenario_id="s",
        user_id="ann",
        input_tokens=2,
        output_tokens=1,
        end_ns=6,
        session_end="escalated",
    )
    last = replace(
        SECOND, start_ns=8, end_ns=9, scenario_id="t", input_tokens=3, session_end="resolved"
    )
    sessions = Sessions()
    sessions.place(KeptTurn(first, 0, 1.0), 1.0)
    [session] = sessions.changes().sessions
    whole = whole_of(session, [first, last])
    assert (whole.agent, whole.agent_version) == ("desk", "2")
    assert (whole.scenario_id, whole.flags) == (None, frozenset({"scenario_conflict"}))
    assert (whole.user_id, whole.session_end) == ("ann", "resolved")
    assert (whole.input_tokens, whole.output_tokens) == (5, None)
    assert (whole.start_ns, whole.end_ns) == (5, 9)
    same = whole_of(session, [first, replace(last, scenario_id=None)])
    assert (same.scenario_id, same.flags) == ("s", frozenset())

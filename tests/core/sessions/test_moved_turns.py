"""Late spans can change the conversation of a turn, back and forth."""

from __future__ import annotations

from pathgauge.collector.core.sessions.session import KeptTurn, SessionBounds
from pathgauge.collector.core.sessions.sessions import Sessions
from pathgauge.collector.testing import span_id, trace_id
from pathgauge.scorers.types import Invocation


def turn(number: int, conversation: str, revision: int = 0) -> KeptTurn:
    name = f"turn {number}"
    invocation = Invocation(
        trace_id(name),
        span_id(name),
        "otel",
        conversation_id=conversation,
        start_ns=number,
    )
    return KeptTurn(invocation, revision, 0.0)


def results(sessions: Sessions, now: float) -> list[tuple[str, int, list[int | None]]]:
    """Of each session that has ended: its id, the revision, and the turns."""
    return [
        (ended.id, ended.revision, [one.invocation.start_ns for one in ended.ordered()])
        for ended, _ in sessions.expire(now)
    ]


def test_a_turn_that_comes_back_when_its_session_is_full_begins_another_one() -> None:
    sessions = Sessions(SessionBounds(idle=100.0, settle=10.0, max_turns=3))
    for now, placed in enumerate(
        [turn(1, "a"), turn(2, "a"), turn(1, "b", 1), turn(3, "a"), turn(4, "a"), turn(1, "a", 2)]
    ):
        sessions.place(placed, float(now))
    [(full, revision, turns)] = results(sessions, 6.0)
    assert (revision, turns) == (0, [2, 3, 4])
    sessions.place(turn(3, "a", 1), 7.0)
    assert results(sessions, 20.0) == [(full, 1, [2, 3, 4])]
    [(other, revision, turns)] = results(sessions, 200.0)
    assert (other != full, revision, turns) == (True, 0, [1])


def test_a_turn_that_comes_back_to_its_open_session_is_part_of_it_again() -> None:
    sessions = Sessions(SessionBounds(idle=100.0))
    for now, placed in enumerate([turn(1, "a"), turn(2, "a"), turn(1, "b", 1), turn(1, "a", 2)]):
        sessions.place(placed, float(now))
    [(_, revision, turns)] = results(sessions, 200.0)
    assert (revision, turns) == (0, [1, 2])

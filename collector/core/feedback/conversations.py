"""Which session an answer about a conversation is about.

Most conversations have one session. A conversation that goes on after a long pause, or beyond the
limits of a session, has several; the answer is about the last one that had begun when it was given.
That one may not have a result yet, so an answer waits until it is certain that no later session had
begun. Nothing but the results of sessions is needed for this: in every shape of deployment they are
where the answers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pathgauge.collector.core.sessions.session import SessionBounds


class SessionTimes(NamedTuple):
    """When a session took place, in Unix seconds."""

    begun_at: float
    ended_at: float
    closed: bool = False
    """Whether the next turn of its conversation begins another session."""


def session_at(
    sessions: Sequence[SessionTimes], given_at: float, now: float, bounds: SessionBounds
) -> int | None:
    """The place of the session that an answer of this time is about, among those of a conversation
    that have a result; `None` while it may be one that has none yet.

    An answer that is older than all of them is about the first one: clocks differ.
    """
    if not sessions:
        return None
    begun = [place for place, one in enumerate(sessions) if one.begun_at <= given_at]
    if not begun:
        return min(range(len(sessions)), key=lambda place: sessions[place].begun_at)
    last = max(begun, key=lambda place: sessions[place].begun_at)
    return last if _is_certain(sessions[last], given_at, now, bounds) else None


def _is_certain(session: SessionTimes, given_at: float, now: float, bounds: SessionBounds) -> bool:
    """Whether no later session without a result had begun: either a turn would have opened this one
    again, or every session of that time has ended.
    """
    opened_again_until = session.ended_at + (0.0 if session.closed else bounds.reopen)
    return given_at <= opened_again_until or now >= given_at + bounds.max_age

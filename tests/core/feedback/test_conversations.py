"""Which session of a conversation an answer is about."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.feedback.conversations import SessionTimes, session_at
from pathgauge.collector.core.sessions.session import SessionBounds

BOUNDS = SessionBounds(idle=10.0, settle=1.0, reopen=100.0, max_age=1_000.0)
MORNING = SessionTimes(1_000.0, 1_050.0)
EVENING = SessionTimes(3_000.0, 3_050.0)
FULL = SessionTimes(1_000.0, 1_050.0, closed=True)


def test_a_conversation_without_a_result_waits() -> None:
    assert session_at([], 1_000.0, 9_999.0, BOUNDS) is None


@pytest.mark.parametrize(
    ("given_at", "now", "expected"),
    [
        (1_020.0, 1_060.0, 0),  # during the session
        (1_150.0, 1_160.0, 0),  # a turn would still open it again
        (1_151.0, 1_160.0, None),  # another session may have begun
        (1_151.0, 2_150.0, None),
        (1_151.0, 2_151.0, 0),  # it would have ended by now
        (10.0, 1_060.0, 0),  # the clock of the sender is wrong
    ],
)
def test_an_answer_waits_until_no_later_session_can_be_meant(
    given_at: float, now: float, expected: int | None
) -> None:
    assert session_at([MORNING], given_at, now, BOUNDS) == expected


def test_an_answer_is_about_the_last_session_that_had_begun() -> None:
    both = [EVENING, MORNING]
    found = [session_at(both, at, 9_999.0, BOUNDS) for at in (10.0, 2_999.0, 3_000.0, 8_000.0)]
    assert found == [1, 1, 0, 0]


def test_after_a_session_at_a_limit_the_next_one_may_have_begun_at_once() -> None:
    assert session_at([FULL], 1_050.0, 1_051.0, BOUNDS) == 0
    assert session_at([FULL], 1_051.0, 1_060.0, BOUNDS) is None
    assert session_at([FULL], 1_051.0, 2_051.0, BOUNDS) == 0

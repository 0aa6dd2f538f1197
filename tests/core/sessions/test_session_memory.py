"""Sessions use a bounded memory, and what is given up for it is counted."""

from __future__ import annotations

from support.session_course import SESSION, Course, Sent, Told


def test_beyond_the_memory_ended_sessions_are_forgotten_before_open_ones_end_early() -> None:
    course = Course(max_bytes=2 * 15_000)
    course.send(Sent(0.0, "ended", 0, ends=True))
    course.wait(SESSION.settle)
    for number in range(1, 10):
        course.send(Sent(0.0, f"open {number}", number))
    assert course.core.usage().conversation_bytes <= 15_000
    early = course.telemetry.sessions_ended.get("memory")
    assert early > 0
    assert [one.ended_by for one in course.told()] == ["signal", *["memory"] * early]
    sessions, turns = course.left()
    assert sessions == turns == 9 - early


def test_a_late_span_of_a_forgotten_session_is_counted_and_makes_no_session() -> None:
    course = Course()
    course.send(Sent(0.0, "a", 0))
    course.wait(SESSION.idle + SESSION.reopen)
    course.send(Sent(0.0, "a", 0, is_late=True))
    course.wait(10 * SESSION.max_age)
    assert course.told() == [Told(frozenset({"turn 0"}), "idle", 1, 3)]
    assert course.telemetry.session_turns_dropped.get("late") == 1

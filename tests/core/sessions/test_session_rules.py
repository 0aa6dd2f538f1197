"""When sessions end, open again, and are closed, one rule at a time."""

from __future__ import annotations

from support.session_course import SESSION, TRACE_S, Course, Sent, Told, truth

LONG = 10 * SESSION.max_age


def told(*sent: Sent) -> list[Told]:
    course = Course()
    for one in sent:
        course.send(one)
    course.wait(LONG)
    assert course.told() == truth(sent, LONG)
    return course.told()


def turns(*numbers: int) -> frozenset[str]:
    return frozenset(f"turn {number}" for number in numbers)


def test_a_quiet_session_ends_and_a_turn_opens_it_again() -> None:
    assert told(Sent(0.0, "a", 0), Sent(SESSION.idle, "a", 1)) == [Told(turns(0, 1), "idle", 2, 6)]
    assert told(Sent(0.0, "a", 0), Sent(SESSION.idle - 5, "a", 1)) == [
        Told(turns(0, 1), "idle", 1, 6)
    ]


def test_a_signal_ends_a_session_after_a_short_while_unless_another_turn_follows() -> None:
    ends = Sent(0.0, "a", 0, ends=True)
    assert told(ends, Sent(SESSION.settle, "a", 1)) == [Told(turns(0, 1), "idle", 2, 6)]
    assert told(ends, Sent(SESSION.settle - 5, "a", 1)) == [Told(turns(0, 1), "idle", 1, 6)]
    assert told(Sent(0.0, "a", 1), Sent(50.0, "a", 0, ends=True)) == [
        Told(turns(0, 1), "idle", 1, 6)  # the newest turn does not signal it
    ]


def test_late_spans_correct_an_ended_session_soon_and_do_not_prolong_an_open_one() -> None:
    late = Sent(50.0, "a", 0, is_late=True)
    ended = told(Sent(0.0, "a", 0), late._replace(pause=SESSION.idle + 5))
    assert ended == [Told(turns(0), "idle", 2, 103)]
    prolonged = told(Sent(0.0, "a", 0), late, Sent(SESSION.idle - 50, "a", 1))
    assert prolonged == [Told(turns(0, 1), "idle", 2, 106)]


def test_a_turn_after_the_time_to_open_a_session_again_begins_another_one() -> None:
    gone = SESSION.idle + SESSION.reopen
    first = Sent(0.0, "a", 0)
    assert len(told(first, Sent(gone - TRACE_S - 1, "a", 1))) == 1
    assert len(told(first, Sent(gone, "a", 1))) == 2


def test_an_old_session_takes_no_further_turn_even_if_it_was_opened_again_before() -> None:
    pause = SESSION.idle + SESSION.reopen - 50.0
    found = told(*(Sent(pause, "a", number) for number in range(4)))
    assert [(one.turns, one.ended_by) for one in found] == [
        (turns(0, 1, 2), "idle"),
        (turns(3), "idle"),
    ]


def test_a_correction_is_published_after_a_short_while() -> None:
    course = Course()
    course.send(Sent(0.0, "a", 0))
    course.wait(SESSION.idle)
    course.send(Sent(0.0, "a", 0, is_late=True))
    course.wait(SESSION.settle - 1)
    assert course.told() == [Told(turns(0), "idle", 1, 3)]
    course.wait(1)
    assert course.told() == [Told(turns(0), "idle", 2, 103)]


def test_several_corrections_of_an_old_session_are_published_together() -> None:
    course = Course(bounds=SESSION._replace(max_age=SESSION.idle + 20))
    course.send(Sent(0.0, "a", 0))
    course.send(Sent(5.0, "a", 1))
    course.wait(SESSION.idle + 50)
    course.send(Sent(0.0, "a", 0, is_late=True))
    course.send(Sent(2.0, "a", 1, is_late=True))
    course.wait(SESSION.settle)
    assert course.told() == [Told(turns(0, 1), "age", 2, 206)]


def test_a_session_that_never_pauses_is_cut_at_its_age() -> None:
    course = Course(bounds=SESSION._replace(max_turns=100))
    for number in range(25):
        course.send(Sent(90.0, "a", number))
    course.wait(LONG)
    found = [(len(one.turns), one.ended_by) for one in course.told()]
    assert sorted(found) == [(3, "idle"), (11, "age"), (11, "age")]


def test_a_session_that_never_pauses_is_cut_at_its_number_of_turns() -> None:
    found = told(*(Sent(90.0, "a", number) for number in range(12)))
    assert [(len(one.turns), one.ended_by) for one in found] == [
        (5, "turns"),
        (2, "idle"),
        (5, "turns"),
    ]


def test_after_a_restart_a_full_session_takes_no_further_turn() -> None:
    sent = [Sent(5.0, "a", number) for number in range(SESSION.max_turns + 1)]
    course = Course()
    for one in sent:
        course.send(one)
        course.restart()
    course.wait(LONG)
    assert course.told() == truth(sent, LONG)
    assert [len(one.turns) for one in course.told()] == [5, 1]


def test_a_session_is_cut_at_its_size() -> None:
    course = Course(bounds=SESSION._replace(max_session_bytes=1))
    course.send(Sent(0.0, "a", 0))
    course.send(Sent(5.0, "a", 1))
    assert [(one.turns, one.ended_by) for one in course.told()] == [
        (turns(0), "bytes"),
        (turns(1), "bytes"),
    ]


def test_without_criteria_for_sessions_none_are_tracked() -> None:
    course = Course()
    course.evaluator.of_sessions = False
    course.send(Sent(0.0, "a", 0))
    assert course.left() == (0, 0)

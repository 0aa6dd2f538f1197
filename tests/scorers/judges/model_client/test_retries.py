"""Repetitions: as many as allowed, never past the deadline, and never earlier than the server
wants.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.judges.model_client.failures import CallError
from pathgauge.scorers.judges.model_client.retries import LONGEST_PAUSE_S, Backoff, retry_after
from support.loopback import Time

WALL = datetime(2026, 11, 22, 4, 20, tzinfo=UTC).timestamp()


def failure(*, may_pass: bool = True, wait: float | None = None) -> CallError:
    return CallError(
        "judge_unavailable", "503", "the server failed", may_pass=may_pass, retry_after=wait
    )


async def run(
    failures: list[CallError], retries: int, deadline: float, draws: float = 1.0
) -> tuple[object, list[float], list[float]]:
    """The result or the failure, when attempts began, and the pauses between them; each attempt
    takes a second.
    """
    time = Time(0.0)
    began: list[float] = []
    left = [*failures]

    async def attempt() -> str:
        began.append(time.now)
        time.now += 1
        if left:
            raise left.pop(0)
        return "done"

    try:
        found: object = await Backoff(retries, time, time.sleep, lambda: draws)(attempt, deadline)
    except CallError as error:
        found = error
    return found, began, time.slept


async def test_pauses_double_up_to_half_a_minute() -> None:
    found, _, slept = await run([failure()] * 9, 9, 1e9)
    assert (found, slept) == ("done", [0.5, 1, 2, 4, 8, 16, 30, 30, 30])


async def test_chance_takes_up_to_half_of_a_pause_away() -> None:
    _, _, slept = await run([failure()] * 9, 9, 1e9, draws=0.0)
    assert slept == [0.25, 0.5, 1, 2, 4, 8, 15, 15, 15]


async def test_the_last_failure_is_the_outcome() -> None:
    failures = [failure(), failure(), failure()]
    found, began, slept = await run(failures, 2, 1e9)
    assert (found, len(began), len(slept)) == (failures[2], 3, 2)


async def test_what_cannot_pass_is_not_repeated() -> None:
    failures = [failure(), failure(may_pass=False), failure()]
    found, began, _ = await run(failures, 5, 1e9)
    assert (found, len(began)) == (failures[1], 2)


WAITS = st.none() | st.floats(0, 100)


@given(st.lists(WAITS, max_size=8), st.integers(0, 6), st.floats(0.1, 300), st.floats(0, 1))
async def test_the_laws_of_repetition(
    waits: list[float | None], retries: int, deadline: float, draws: float
) -> None:
    failures = [failure(wait=wait) for wait in waits]
    found, began, slept = await run(failures, retries, deadline, draws)
    assert len(began) <= retries + 1
    assert len(slept) == len(began) - 1
    assert all(begun < deadline for begun in began[1:])
    for wait, pause in zip(waits, slept, strict=False):
        assert pause >= (wait or 0)
        assert pause <= (wait or 0) + LONGEST_PAUSE_S
    if found != "done":
        assert found is failures[len(began) - 1]
        wait = waits[len(began) - 1]
        assert (
            len(began) == retries + 1 or began[-1] + 1 + (wait or 0) + LONGEST_PAUSE_S >= deadline
        )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (format_datetime(datetime(2026, 11, 22, 4, 21, 30, tzinfo=UTC), usegmt=True), 90.0),
        (format_datetime(datetime(2026, 11, 22, 4, 19, tzinfo=UTC), usegmt=True), 0.0),
        ("Sunday, 22-Nov-26 04:21:30 GMT", 90.0),
        ("", None),
        ("soon", None),
        ("-7", None),
        ("nan", None),
        ("1e999", None),
        ("7 seconds", None),
        ("Sun, 22 Nov 99999 04:21:30 GMT", None),
    ],
)
def test_servers_say_how_long_to_wait_in_seconds_or_with_a_date(
    value: str, expected: float | None
) -> None:
    assert retry_after({"retry-after": value}, WALL) == expected


def test_most_servers_do_not_say() -> None:
    assert retry_after({}, WALL) is None

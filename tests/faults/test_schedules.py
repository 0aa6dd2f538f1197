"""Requests that are repeated, reordered and late, with crashes between any steps: the newest
results equal those of all spans at once, and each is counted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.traces import Bounds

from . import patched
from .sizes import times
from .traffic import Request, request_of, split, trace
from .truth import Seen, Truth, seen, setup, truth
from .virtual import VirtualCollector

HOUR = 3600.0
BOUNDS = Bounds(settle=6.0, idle=30.0, max_age=600.0, late_ttl=5 * HOUR)
SMALL = Bounds(
    settle=6.0,
    idle=30.0,
    max_age=600.0,
    late_ttl=5 * HOUR,
    max_trace_bytes=40_000,
    max_open_bytes=60_000,
)
"""So little memory that traces are constantly spilled to the journal."""
PAUSES = (0.0, 0.0, 0.0, 1.0, 7.0, 60.0, HOUR / 60)
"""Seconds between two requests. Their sum is below `late_ttl`."""


def schedule(random: Random, traces: int) -> list[Request]:
    """The requests of some traces in any order, some of them two or three times."""
    parts = [
        part for number in range(traces) for part in split(trace(f"trace-{number}", random), random)
    ]
    random.shuffle(parts)
    requests: list[Request] = []
    while parts:
        taken, parts = parts[:3], parts[3:]
        requests.append(request_of(len(requests), [span for part in taken for span in part]))
    repeated = [request for request in requests for _ in range(random.choice((1, 1, 1, 2, 3)))]
    random.shuffle(repeated)
    return repeated


def played(
    folder: Path, scoring: ActiveConfig, bounds: Bounds, random: Random, requests: list[Request]
) -> VirtualCollector:
    """A collector that received the requests in this order, with crashes between steps."""
    collector = VirtualCollector(folder, scoring, bounds)
    collector.start()
    waiting = list(requests)
    while waiting:
        count = random.randint(1, 4)
        collector.send(waiting[:count])
        waiting = waiting[count:]
        for step in random.sample(
            (
                collector.take_in,
                collector.commit,
                lambda: collector.wait(random.choice(PAUSES)),
                again(collector),
            ),
            4,
        ):
            step()
    collector.wait(2 * bounds.max_age)
    collector.commit()
    again(collector)()
    return collector


def again(collector: VirtualCollector) -> Callable[[], None]:
    """Crash and restart."""

    def crash() -> None:
        collector.crash()
        collector.start()

    return crash


def breaches_of(right: Truth, found: Seen, counted: Counter[str], accepted: int) -> list[str]:
    """Every difference from the expected results."""
    breaches = []
    if found.said != right.said:
        wrong = {
            key: (right.said.get(key), found.said.get(key))
            for key in right.said.keys() | found.said.keys()
            if right.said.get(key) != found.said.get(key)
        }
        breaches.append(f"{len(wrong)} results: {dict(list(wrong.items())[:2])}")
    expected = {
        "receiver_accepted_spans": accepted,
        "spans_assembled": right.spans,
        "spans_dropped": accepted - right.spans,
        "traces_opened": right.traces,
        "traces_completed": right.traces,
        "invocations_read": found.invocations,
        "evaluation_revisions": found.revisions,
        "evaluations_withdrawn": found.withdrawn,
    }
    breaches += [
        f"{name} is {counted[name]}, expected {count}"
        for name, count in expected.items()
        if counted[name] != count
    ]
    return breaches


def all_breaches(folder: Path, seed: int, bounds: Bounds, traces: int, schedules: int) -> list[str]:
    """The differences in so many schedules."""
    scoring, breaches = setup(folder), list[str]()
    for number in range(schedules):
        random = Random(seed * 1000 + number)
        requests = schedule(random, traces)
        collector = played(folder / str(number), scoring, bounds, random, requests)
        counted = Counter({counter.name: counter.total() for counter in collector.telemetry})
        collector.crash()
        right = truth((span for request in requests for span in request.spans()), scoring)
        accepted = sum(request.size for request in requests)
        breaches += [
            f"schedule {number}: {one}"
            for one in breaches_of(right, seen(folder / str(number)), counted, accepted)
        ]
    return breaches


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [BOUNDS, SMALL], ids=["in memory", "spilled"])
def test_every_schedule_has_the_same_end(tmp_path: Path, seed: int, bounds: Bounds) -> None:
    assert all_breaches(tmp_path, seed, bounds, times(20, 100), times(8, 100)) == []


MISTAKES = ["forget_what_was_said", "read_everything_again", "release_rows_early"]


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_schedule_brings_to_light(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    patched.PATCHES[mistake](monkeypatch.setattr)
    assert all_breaches(tmp_path, seed, BOUNDS, 10, 2) != []

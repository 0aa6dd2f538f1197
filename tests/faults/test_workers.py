"""Several scorer processes: whatever is killed, hangs or is restarted with another number of
scorers, no acknowledged span is lost, nothing is counted twice, and no count decreases.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from random import Random

import pytest

from support.running import PATIENCE_S, until

from .restarted import RestartedCollector, Series
from .sender import Sender
from .sizes import times
from .traffic import Traffic
from .verdict import decreases, judge

pytestmark = pytest.mark.slow

LOAD_S = 0.8
"""The longest time of load before a fault."""
REQUESTS = 20
"""That are acknowledged between two faults, at least."""
CONVERSATIONS = 0.4
HANGS_S = 9.0
"""Longer than the parent waits for a scorer, and than it takes to be called unready."""
WORKERS = (1, 4, 2, 1, 3, 2)


def send_signal(number: signal.Signals, *pids: int) -> None:
    """Send a signal to processes, some of which may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_a_scorer(collector: RestartedCollector, random: Random) -> None:
    """Under load."""
    send_signal(signal.SIGKILL, random.choice(until(lambda: collector.scorers)))


def kill_all_scorers(collector: RestartedCollector, random: Random) -> None:
    """At once."""
    send_signal(signal.SIGKILL, *collector.scorers)


def kill_scorers_again_and_again(collector: RestartedCollector, random: Random) -> None:
    """Some while they start."""
    for _ in range(4):
        send_signal(signal.SIGKILL, *collector.scorers[:1])
        time.sleep(random.uniform(0, 0.6))


def kill_the_parent(collector: RestartedCollector, random: Random) -> None:
    """Its scorers commit what they have, and end."""
    collector.process.kill()
    collector.process.wait()


def kill_everything(collector: RestartedCollector, random: Random) -> None:
    """The parent first, so that it starts no scorer again."""
    scorers = collector.scorers
    collector.process.kill()
    send_signal(signal.SIGKILL, *scorers)
    collector.process.wait()


def kill_everything_while_the_parent_hangs(collector: RestartedCollector, random: Random) -> None:
    """What scorers have published was sent and not read."""
    send_signal(signal.SIGSTOP, collector.process.pid)
    time.sleep(1.0)
    kill_everything(collector, random)


def kill_everything_while_a_scorer_hangs(collector: RestartedCollector, random: Random) -> None:
    """What other scorers have forwarded to it was sent and not read."""
    send_signal(signal.SIGSTOP, *collector.scorers[:1])
    time.sleep(1.5)
    kill_everything(collector, random)


def kill_in_drain(collector: RestartedCollector, random: Random) -> None:
    """During an orderly stop."""
    scorers = collector.scorers
    collector.process.terminate()
    time.sleep(random.uniform(0, 0.6))
    send_signal(signal.SIGKILL, *random.choice([scorers, [collector.process.pid]]))
    collector.process.wait(PATIENCE_S)


def stop_in_order(collector: RestartedCollector, random: Random) -> None:
    """As an upgrade does."""
    assert collector.stop() == 0


def hang(collector: RestartedCollector, random: Random) -> None:
    """A scorer does nothing for longer than senders wait."""
    scorer = random.choice(until(lambda: collector.scorers))
    send_signal(signal.SIGSTOP, scorer)
    time.sleep(HANGS_S)
    send_signal(signal.SIGCONT, scorer)


Fault = Callable[[RestartedCollector, Random], None]


class Session:
    """A collector under load, from `__init__` to `judged`."""

    def __init__(self, folder: Path, seed: int, workers: int, *patches: str) -> None:
        self.random = Random(seed)
        self.patches = patches
        self.breaches: list[str] = []
        self.collector = RestartedCollector(folder, workers=workers)
        try:
            self.collector.start(*patches)
        except BaseException:
            self.collector.kill()
            raise
        ports = self.collector.ports
        self.sender = Sender(Traffic(seed, CONVERSATIONS), ports["grpc"], ports["http"])
        self.sender.start()

    def suffer(self, fault: Fault, workers: int = 0) -> None:
        """Have a fault happen after some load. If that ends the parent, it is started again, with
        another number of `workers` if one is given.
        """
        enough = self.sender.acknowledged() + REQUESTS
        until(lambda: self.sender.acknowledged() >= enough)  # all scorers run again
        time.sleep(self.random.uniform(0, LOAD_S))
        before = self.collector.counts()
        fault(self.collector, self.random)
        if self.collector.process.poll() is not None:
            if workers:
                self.collector.change(workers=workers)
            self.collector.start(*self.patches)
        self._compare(before, f"{fault.__name__} {workers or ''}")

    def judged(self, patience: float = PATIENCE_S) -> list[str]:
        """Every broken guarantee."""
        self.sender.finish()
        return self.breaches + judge(
            self.collector, self.sender.record, patience, several_scorers=True
        )

    def close(self) -> None:
        """End what may still run."""
        self.sender.break_off()
        self.collector.stop()

    def _compare(self, before: Series, after: str) -> None:
        self.breaches += [
            f"after {after}: {breach}" for breach in decreases(before, self.collector.counts())
        ]


def suffered(
    folder: Path, seed: int, faults: list[Fault], *patches: str, patience: float = PATIENCE_S
) -> list[str]:
    """Every broken guarantee of a collector with two scorers that suffers these faults."""
    folder.mkdir(exist_ok=True)
    session = Session(folder, seed, 2, *patches)
    try:
        for fault in faults:
            session.suffer(fault)
        return session.judged(patience)
    finally:
        session.close()


FAULTS: list[tuple[Fault, int, int]] = [
    (kill_a_scorer, 1, 6),
    (kill_all_scorers, 1, 3),
    (kill_scorers_again_and_again, 1, 2),
    (kill_the_parent, 1, 6),
    (kill_everything, 0, 4),
    (kill_everything_while_the_parent_hangs, 1, 2),
    (kill_everything_while_a_scorer_hangs, 1, 2),
    (kill_in_drain, 1, 4),
    (stop_in_order, 0, 2),
]
"""With the number of times in the short form, and in each session of the long form."""


@pytest.mark.parametrize("session", range(times(1, 10)))
def test_what_was_acknowledged_is_scored_once_whichever_process_dies(
    tmp_path: Path, seed: int, session: int
) -> None:
    faults = [fault for fault, short, long in FAULTS for _ in range(times(short, long))]
    Random(seed + session).shuffle(faults)
    assert suffered(tmp_path, seed + session, faults, "checkpoint_often") == []


@pytest.mark.parametrize("session", range(times(1, 5)))
def test_senders_are_told_to_retry_while_a_scorer_hangs_and_nothing_is_lost(
    tmp_path: Path, seed: int, session: int
) -> None:
    assert suffered(tmp_path, seed + session, [hang] * times(1, 3)) == []


@pytest.mark.parametrize("session", range(times(1, 6)))
def test_the_number_of_scorers_can_change_with_every_start(
    tmp_path: Path, seed: int, session: int
) -> None:
    state = Session(tmp_path, seed + session, WORKERS[0], "checkpoint_often")
    try:
        for workers in islice(cycle(WORKERS), 1, times(4, 20)):
            ends = state.random.choice([kill_the_parent, kill_everything, stop_in_order])
            state.suffer(ends, workers)
        assert state.judged() == []
    finally:
        state.close()


SESSIONS_UNTIL_FOUND = 4
"""A fault shows a mistake only if it comes between two steps, so one session may miss it."""
MISTAKES: list[tuple[str, Fault]] = [
    ("forget_what_the_gauge_has_read", kill_everything_while_a_scorer_hangs),
    ("do_not_store_counts", kill_everything),
    ("delete_what_was_only_sent", kill_everything_while_the_parent_hangs),
    ("publish_twice", kill_a_scorer),
    ("acknowledge_turns_before_they_are_passed_on", kill_everything_while_a_scorer_hangs),
    ("acknowledge_a_request_of_which_a_part_is_stored", kill_a_scorer),
    ("commit_without_a_publication", kill_a_scorer),
]


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        pytest.param(*one, marks=[] if number == 0 else [pytest.mark.long])
        for number, one in enumerate(MISTAKES)
    ],
)
def test_faults_bring_to_light(tmp_path: Path, seed: int, mistake: str, fault: Fault) -> None:
    assert any(
        suffered(tmp_path / str(session), seed + session, [fault] * 4, mistake, patience=4.0)
        for session in range(SESSIONS_UNTIL_FOUND)
    )

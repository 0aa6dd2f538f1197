"""Gateways, scorers and gauges over Kafka and PostgreSQL: whatever is killed, stopped or cut off,
what was acknowledged is scored once, and no count decreases.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from support import kafka, postgres

from .clusters import Cluster, Member, running
from .sender import Sender
from .sizes import times
from .traffic import Traffic
from .verdict import decreases, judge

pytestmark = pytest.mark.slow

LOAD_S = 3.0
"""The longest time of load before a fault."""
SESSION_S = 12.0
"""Longer than a scorer may be silent before others take over its partitions."""
PATIENCE_S = 180.0
CONVERSATIONS = 0.2
"""The share of traces that are turns of conversations."""
PAUSE_S = 0.05
"""Between two requests of a sender."""

Fault = Callable[[Cluster, Random], None]


@pytest.fixture(scope="module")
def broker() -> Iterator[kafka.Broker]:
    with kafka.running_broker(links=2) as running_broker:
        yield running_broker


@pytest.fixture(scope="module")
def database() -> Iterator[postgres.Server]:
    with postgres.server() as server:
        yield server


def kill(member: Member) -> None:
    member.kill()
    member.start()


def a_gateway_dies(cluster: Cluster, random: Random) -> None:
    kill(random.choice(cluster.gateways))


def a_scorer_dies(cluster: Cluster, random: Random) -> None:
    kill(random.choice(cluster.scorers))


def a_gauge_dies(cluster: Cluster, random: Random) -> None:
    kill(random.choice(cluster.gauges))


def everything_dies(cluster: Cluster, random: Random) -> None:
    for member in cluster.members:
        member.kill()
    for member in cluster.members:
        member.start()


def the_broker_dies(cluster: Cluster, random: Random) -> None:
    cluster.broker.kill()
    time.sleep(random.uniform(0, 2))
    cluster.broker.restart()


def the_broker_dies_as_a_scorer_joins(cluster: Cluster, random: Random) -> None:
    """While the partitions are balanced again."""
    scorer = random.choice(cluster.scorers)
    kill(scorer)
    scorer.wait()
    time.sleep(random.uniform(0, 4))
    cluster.broker.restart()


def the_database_dies(cluster: Cluster, random: Random) -> None:
    cluster.database.kill()
    time.sleep(random.uniform(0, 2))
    cluster.database.restart()


def a_scorer_stands_still(cluster: Cluster, random: Random) -> None:
    """So long that others take over. Its next commit must be refused."""
    scorer = random.choice(cluster.scorers)
    scorer.send(signal.SIGSTOP)
    time.sleep(SESSION_S)
    scorer.send(signal.SIGCONT)


def the_gauge_stands_still(cluster: Cluster, random: Random) -> None:
    gauge = random.choice(cluster.gauges)
    gauge.send(signal.SIGSTOP)
    time.sleep(random.uniform(1, 5))
    gauge.send(signal.SIGCONT)


def a_link_is_cut(cluster: Cluster, random: Random) -> None:
    """All connections between processes of two kinds, in the middle of whatever they do."""
    random.choice(list(cluster.links.values())).cut()


def a_link_falls_silent(cluster: Cluster, random: Random) -> None:
    """Up to so long that others take over partitions. Then its connections are cut."""
    with random.choice(list(cluster.links.values())).silent():
        time.sleep(random.uniform(0, SESSION_S))


def sessions_are_ended(cluster: Cluster, random: Random) -> None:
    """Those of all processes in PostgreSQL."""
    cluster.database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )


FAULTS: list[tuple[Fault, int, int]] = [
    (a_gateway_dies, 1, 10),
    (a_scorer_dies, 1, 10),
    (a_gauge_dies, 1, 10),
    (everything_dies, 0, 3),
    (the_broker_dies, 0, 10),
    (the_broker_dies_as_a_scorer_joins, 0, 6),
    (the_database_dies, 1, 10),
    (a_scorer_stands_still, 0, 3),
    (the_gauge_stands_still, 0, 3),
    (sessions_are_ended, 0, 3),
    (a_link_is_cut, 1, 12),
    (a_link_falls_silent, 0, 6),
]
"""With the number of faults in the short form, and in each session of the long form."""


def faulted(cluster: Cluster, seed: int, faults: list[Fault]) -> list[str]:
    """Every broken guarantee of a cluster that suffers these faults, one after the other."""
    random = Random(seed)
    sender = Sender(Traffic(seed, CONVERSATIONS), *cluster.sender_ports(), pause=PAUSE_S)
    sender.start()
    breaches: list[str] = []
    try:
        for number, fault in enumerate(faults):
            time.sleep(random.uniform(0, LOAD_S))
            before = cluster.counts()
            fault(cluster, random)
            breaches += [
                f"after fault {number} {fault.__name__}: {breach}"
                for breach in decreases(before, cluster.counts())
            ]
        sender.finish()
        breaches += [
            f"{member.name} has ended on its own"
            for member in cluster.members
            if member.process is not None and member.process.poll() is not None
        ]
        breaches += [
            f"nothing connects {' and '.join(pair)} over their link"
            for pair, link in cluster.links.items()
            if not link.connections
        ]
        return breaches + judge(cluster, sender.record, PATIENCE_S, several_scorers=True)
    finally:
        sender.break_off()


@pytest.mark.parametrize("session", range(times(1, 10)))
def test_what_was_acknowledged_is_scored_once_whatever_dies(
    tmp_path: Path,
    broker: kafka.Broker,
    database: postgres.Server,
    seed: int,
    session: int,
) -> None:
    faults = [fault for fault, short, long in FAULTS for _ in range(times(short, long))]
    Random(seed + session).shuffle(faults)
    with running(tmp_path, broker, database) as cluster:
        assert faulted(cluster, seed + session, faults) == []


def test_the_number_of_scorers_changes_under_load(
    tmp_path: Path, broker: kafka.Broker, database: postgres.Server, seed: int
) -> None:
    def more(cluster: Cluster, random: Random) -> None:
        for scorer in cluster.scorers[1:]:
            scorer.start()
        for scorer in cluster.scorers[1:]:
            scorer.wait()

    def fewer(cluster: Cluster, random: Random) -> None:
        for scorer in cluster.scorers[2:]:
            assert scorer.stop() == 0

    with running(tmp_path, broker, database, scorers=4) as cluster:
        for scorer in cluster.scorers[1:]:
            scorer.stop()
        assert faulted(cluster, seed, [more, fewer]) == []

"""The scorer of one partition."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from structlog.testing import capture_logs

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import resolve
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.core.pipeline_events import Changes
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.receivers.kafka.partition_source import PartitionSource
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.service.cluster.partition_scorers import PartitionScorer, PartitionScorers
from pathgauge.collector.service.memory.plan import without_limit
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.testing import span
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn
from support.running import PATIENCE_S, until
from support.scorers import request
from support.shared_database import NoRecords, head, rows, scorer, step

TALK = Reference("talk", (ReferenceTurn(), ReferenceTurn()))


def test_the_log_names_the_partition_that_continues(address: str) -> None:
    with scorer(address, 3) as database:
        assert database.commit(step(1, heads=[head(1, "ab" * 16)]))
    config = Config()
    one = PartitionScorer(
        without_limit(config),
        resolve(config),
        Partition(3, 4),
        PartitionDatabase(address, 3),
        NoRecords(),
    )
    with capture_logs() as lines:
        one.start()
        one.stop(10.0)
    resumed = {"event": "resumed", "log_level": "info", "partition": 3}
    assert lines == [resumed | {"requests": 1, "to_read": 0, "traces": 0}]


@pytest.mark.slow
def test_a_conversation_ends_when_the_other_partitions_are_further(address: str) -> None:
    invocation = Invocation("a" * 32, "1" * 16, "genai", conversation_id="a", scenario_id="talk")
    now, config = int(time.time()), Config()
    an_hour_ago = now - 3600
    turn = StoredTurn(invocation, float(an_hour_ago), number=0)
    one = PartitionScorer(
        without_limit(config),
        replace(resolve(config), references=ReferenceSet([TALK])),
        Partition(0, 2),
        PartitionDatabase(address, 0),
        NoRecords(),
    )

    def has_ended() -> bool:
        one.poll(learn=False)
        return rows(address, "SELECT count(*) FROM turns") == [(0,)]

    with scorer(address, 1) as other, scorer(address, 0) as earlier:
        assert earlier.commit(step(an_hour_ago, changes=Changes(turns=(turn,))))
        assert other.commit(step(an_hour_ago))
        one.start()
        assert not until(has_ended, 3.0)
        assert other.commit(step(now))
        assert until(has_ended)
        one.stop(10.0)


class EmptySource(PartitionSource):
    """A partition whose topics have no records but those that a test delivers."""

    def __init__(self, partition: int) -> None:
        self.partition = partition

    def at_end(self, now: float) -> bool:
        return True


def test_a_partition_that_is_claimed_during_a_reload_is_scored_with_the_new_criteria(
    address: str,
) -> None:
    config = Config()
    setup = resolve(config)
    [latency] = [one for one in setup.evaluator.criteria if one.name == "latency"]
    reloaded = replace(setup, evaluator=Evaluator((latency,)))
    with scorer(address):
        pass  # it has a row now, whose lock the next process waits for
    scorers = PartitionScorers(without_limit(config), setup, address, 1, lambda kind, seconds: None)
    with psycopg.connect(address) as other, ThreadPoolExecutor() as threads:
        other.execute("SELECT 1 FROM partitions FOR UPDATE")
        assigning = threads.submit(scorers.assigned, EmptySource(0))
        assert until(lambda: rows(address, "SELECT 1 FROM pg_locks WHERE NOT granted"))
        scorers.configure(reloaded)
        other.commit()
        assigning.result(PATIENCE_S)
    run = request(span("a", "agent", {"gen_ai.operation.name": "invoke_agent"}, trace="run"))
    assert scorers.deliver(0, KafkaRecord("spans", 0, time.time() - 600, run, {}))
    assert until(lambda: rows(address, "SELECT 1 FROM results"))
    scorers.revoked(0)
    [(body,)] = rows(address, "SELECT body FROM results")
    assert [one["name"] for one in json.loads(body)["criteria"]] == ["latency"]

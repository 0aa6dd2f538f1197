"""The scorer of one partition."""

from __future__ import annotations

from structlog.testing import capture_logs

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import resolve
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.service.cluster.partition_scorers import PartitionScorer
from pathgauge.collector.service.memory.plan import without_limit
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from support.shared_database import NoRecords, head, scorer, step


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

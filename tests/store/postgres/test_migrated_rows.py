"""What `pathgauge migrate` copies beside results, requests and traces."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.service.migration.requests import Produced
from pathgauge.collector.service.migration.rows import copy_state
from pathgauge.collector.store import Progress
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.schema import migrate
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.resharding.source import opened
from pathgauge.collector.store.sqlite.store import SqliteStore


def test_each_partition_is_charged_with_its_part_of_what_judges_have_spent(
    address: str, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path)
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    spent = Row(("judge_spent", "day"), [3.0, 8.0, 100.0, 0.5])
    assert store.commit(Progress(0, 0.0, 0.0, counts=[spent]))
    store.close()
    folders = reshard(tmp_path, 4)
    with closing(connect(address)) as database:
        migrate(database)
        with database.transaction():
            for partition, folder in enumerate(folders):
                with opened(folder, folder.name) as source:
                    copy_state(source, database, partition, Produced(), 0.0)
    for partition in range(4):
        owner = PartitionDatabase(address, partition)
        counts = owner.claim("one").restored.counts
        owner.close()
        assert [(tuple(key), state) for key, state in counts] == [
            (("judge_spent", "day"), [3.0, 2.0, 25.0, 0.125])
        ]

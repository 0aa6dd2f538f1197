"""What `pathgauge migrate` copies beside results, requests and traces."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.service.migration.requests import Produced
from pathgauge.collector.service.migration.rows import copy_results, copy_state
from pathgauge.collector.store import Progress
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.feedback import FeedbackWriter
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.schema import migrate
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import pairs
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.resharding.source import opened
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.answered import answer, answered_talks, paired_talks
from support.evaluated import commit, opened as opened_store
from support.sessions import BOUNDS


def test_each_partition_is_charged_with_its_part_of_what_judges_have_spent(
    address: str, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path)
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    names = "judge_spent", "shadow_judge_spent"
    spent = [Row((name, "day"), [3.0, 8.0, 100.0, 0.5]) for name in names]
    assert store.commit(Progress(0, 0.0, 0.0, counts=spent))
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
        assert {tuple(key): state for key, state in counts} == {
            (name, "day"): [3.0, 2.0, 25.0, 0.125] for name in names
        }


def test_answers_are_copied_with_what_they_are_compared_with(address: str, tmp_path: Path) -> None:
    first = answer("x", "up", rater="ann")
    with opened_store(tmp_path) as store:
        for events in answered_talks():
            commit(store, events)
        assert store.record_feedback([first]) == ["created"]
    with closing(connect(address)) as database:
        migrate(database)
        with opened(tmp_path) as main, database.transaction():
            assert copy_results(main.connection, database) == 4
        found = pairs(database, VerdictRules(), Clock(10_000.0, BOUNDS), 0.0)
    expected = paired_talks()
    expected.answers["waiting"] += 1
    assert found == expected
    again = FeedbackWriter(address).record
    assert again([first, answer("x", "down", rater="ann")]) == ["repeated", "replaced"]

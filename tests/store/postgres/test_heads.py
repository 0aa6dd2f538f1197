"""The requests that a partition still needs are in the database."""

from __future__ import annotations

from pathgauge.collector.core.pipeline_events import Changes
from support.shared_database import head, rows, scorer, step

A = "a" * 32


def test_a_released_request_is_deleted_in_its_own_partition_only(address: str) -> None:
    with scorer(address, 0) as zero, scorer(address, 4) as four:
        for database in (zero, four):
            assert database.commit(step(1, heads=[head(1, A)]))
        assert zero.commit(step(2, changes=Changes(released_rows=(1,))))
    assert rows(address, "SELECT partition FROM requests") == [(4,)]

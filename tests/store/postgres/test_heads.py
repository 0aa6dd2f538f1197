"""The database knows where the requests of a trace are in Kafka."""

from __future__ import annotations

from pathgauge.collector.core.pipeline_events import Changes
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.heads import Place, places_of_trace
from support.shared_database import head, rows, scorer, step

A, B = "a" * 32, "b" * 32


def test_the_requests_of_a_trace_are_found_in_all_partitions(address: str) -> None:
    with scorer(address, 0) as zero, scorer(address, 4) as four:
        assert zero.commit(step(2, heads=[head(1, A), head(2, B, A, tenant="north")]))
        assert four.commit(step(3, heads=[head(3, A), head(4, B)]))
    connection = connect(address)
    found = places_of_trace(connection, A)
    assert found == [
        (("", A), Place("otlp_spans", 0, 101)),
        (("north", A), Place("otlp_spans", 0, 102)),
        (("", A), Place("otlp_spans", 4, 103)),
    ]
    assert places_of_trace(connection, A, "north") == found[1:2]
    assert places_of_trace(connection, "c" * 32) == []
    connection.close()


def test_a_released_request_is_deleted_in_its_own_partition_only(address: str) -> None:
    with scorer(address, 0) as zero, scorer(address, 4) as four:
        for database in (zero, four):
            assert database.commit(step(1, heads=[head(1, A)]))
        assert zero.commit(step(2, changes=Changes(released_rows=(1,))))
    assert rows(address, "SELECT partition FROM requests") == [(4,)]

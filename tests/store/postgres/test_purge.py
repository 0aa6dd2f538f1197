"""A purge removes data from every table, and no scorer writes it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathgauge.collector.cli import app
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn, StoredTrace
from pathgauge.collector.core.traces import TraceSnapshot
from pathgauge.collector.store import Purged, Selection, StoreError
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.purge import purge
from pathgauge.collector.store.postgres.steps import Step
from support.evaluated import WALL, evaluation
from support.shared_database import head, rows, scorer, step

UNWANTED = evaluation("unwanted", scenario="secret")
KEPT = evaluation("kept")
IDS = UNWANTED.invocation.trace_id, KEPT.invocation.trace_id
SEEN = (
    "SELECT trace_id FROM results UNION SELECT trace_id FROM evidence UNION SELECT trace_id FROM"
    " turns UNION SELECT trace_id FROM traces UNION SELECT trace_id FROM awaited UNION"
    " SELECT trace_id FROM forwarded UNION SELECT unnest(traces) FROM requests"
)
SELECTIONS = [
    Selection(trace_id=IDS[0]),
    Selection(scenario="secret"),
    Selection(before=WALL + 50),
]


def full(row: int, one: Evaluation) -> Step:
    """A step that leaves something in every table; the second is 100 seconds later."""
    key, invocation = one.key, replace(one.invocation, conversation_id="c")
    state = TraceSnapshot(key[:2], (row,), 0.0, 0.0, float(row), completed=True)
    changes = Changes(
        traces=(StoredTrace(state, {}),),
        turns=(StoredTurn(invocation, 1.0),),
        judgments_begun=(PendingJudgment(key, 0, b"{}", None, "root_ended", True, False),),
        forwarded=(ForwardedTurn(key, invocation, target=1),),
    )
    wall = WALL + 100 * (row - 1)
    request = head(row, key[1], tenant=key[0])._replace(wall=wall)
    return step(row, [one], changes=changes, heads=[request], wall=wall)


@pytest.fixture
def filled(address: str) -> str:
    with scorer(address) as database:
        assert database.commit(full(1, UNWANTED))
        assert database.commit(full(2, KEPT))
        both = head(3, *IDS)._replace(wall=WALL + 200)
        assert database.commit(step(3, heads=[both], wall=WALL + 200))
    return address


@pytest.mark.parametrize("selection", SELECTIONS, ids=["trace", "scenario", "time"])
def test_nothing_of_the_selection_is_left_and_everything_else_is(
    filled: str, selection: Selection
) -> None:
    purged = purge(filled, selection, 0.0)
    assert purged == Purged(
        requests=2,
        results=1,
        unfinished=purged.unfinished,
        traces=frozenset({("", IDS[0])}),
        evaluations=frozenset({UNWANTED.key}),
    )
    assert "VACUUM FULL" in (purged.unfinished or "")
    assert rows(filled, SEEN) == [(IDS[1],)]
    assert rows(filled, 'SELECT "row", traces FROM requests ORDER BY "row"') == [
        (2, [IDS[1]]),
        (3, [IDS[1]]),
    ]
    assert purge(filled, selection, 0.0).results == 0


def test_of_a_tenant_nothing_is_left_and_of_others_everything(address: str) -> None:
    """Both have sent a trace with the same id."""
    with scorer(address) as database:
        for row, tenant in enumerate(("blue", "green"), 1):
            assert database.commit(full(row, evaluation("same", tenant=tenant)))
    purged = purge(address, Selection(tenant="blue"), 0.0)
    assert (purged.requests, purged.results) == (1, 1)
    assert {key[0] for key in purged.traces | purged.evaluations} == {"blue"}
    tenants = SEEN.replace("unnest(traces)", "tenant").replace("trace_id", "tenant")
    assert rows(address, tenants) == [("green",)]
    assert purge(address, Selection(tenant="blue"), 0.0).results == 0


def files_with(address: str, text: str) -> set[str]:
    """The tables and indexes whose files hold these bytes, without the one that tells processes of
    purges.
    """
    rows(address, "CHECKPOINT")
    found = rows(
        address,
        "SELECT coalesce(t.relname, c.relname) FROM pg_class AS c"
        " LEFT JOIN pg_class AS t ON t.reltoastrelid = c.oid"
        " WHERE c.relkind IN ('r', 'i', 't') AND c.relnamespace <> 'pg_catalog'::regnamespace"
        " AND position(%s::bytea in pg_read_binary_file(pg_relation_filepath(c.oid))) > 0",
        text.encode(),
    )
    return {name for (name,) in found} - {"purges"}


def test_a_purge_can_rewrite_the_tables_so_that_no_byte_is_left(filled: str) -> None:
    with scorer(filled) as database:
        assert database.commit(step(4, publication=IDS[1].encode()))
    rows(filled, "DELETE FROM publications")  # the gauge has read it
    newest = Selection(trace_id=IDS[1])
    purge(filled, newest, 0.0)
    assert {"results", "traces"} <= files_with(filled, IDS[1])
    assert purge(filled, newest, 0.0, rewrite=True).unfinished is None
    assert files_with(filled, IDS[1]) == set()
    assert rows(filled, SEEN) == [(IDS[0],)]


@pytest.mark.parametrize(("unread", "counted"), [(1, "1 publication"), (2, "2 publications")])
def test_publications_that_no_gauge_has_read_are_counted(
    filled: str, unread: int, counted: str
) -> None:
    with scorer(filled) as database:
        for row in range(4, 4 + unread):
            assert database.commit(step(row, publication=b"of the trace"))
    assert purge(filled, SELECTIONS[0], 0.0, rewrite=True).unfinished == (
        f"the gauge has not read {counted}, which may name it"
    )


@pytest.mark.parametrize("options", [[], ["--rewrite"]])
def test_the_command_says_what_it_leaves_in_kafka_and_in_the_files(
    filled: str, tmp_path: Path, options: list[str]
) -> None:
    kafka = {"client": {"bootstrap.servers": "127.0.0.1:1"}, "logs_topic": "logs"}
    config = tmp_path / "pathgauge.yaml"
    config.write_text(json.dumps({"kafka": kafka, "postgres": {"conninfo": filled}}))
    command = ["purge", "--config", str(config), "--trace", IDS[0], *options]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0
    assert found.stdout == "postgres: removed it from 2 requests, 1 result\n"
    of_kafka, *of_files = found.stderr.splitlines()
    assert of_kafka == (
        "pathgauge: Kafka keeps the requests until the retention.ms of the topics otlp_spans and"
        " logs is over"
    )
    assert [line.partition(" until")[0] for line in of_files] == (
        [] if options else ["pathgauge: PostgreSQL keeps the bytes of removed rows in its files"]
    )


def test_a_scorer_has_to_read_the_purge_before_it_commits_again(filled: str) -> None:
    with scorer(filled) as database:
        purge(filled, SELECTIONS[0], 0.0)
        assert not database.commit(full(4, UNWANTED))
        assert rows(filled, SEEN) == [(IDS[1],)]
        [found] = database.news().purges
        assert (found.traces, found.evaluations) == (
            frozenset({("", IDS[0])}),
            frozenset({UNWANTED.key}),
        )
        assert database.commit(step(4))
        assert database.news().purges == []


def test_who_claims_a_partition_later_has_nothing_of_it(filled: str) -> None:
    purge(filled, SELECTIONS[0], 0.0)
    database = PartitionDatabase(filled, 0)
    restored = database.claim("later").restored
    assert [one.snapshot.key[1] for one in restored.traces] == [IDS[1]]
    assert [one.invocation.trace_id for one in restored.turns] == [IDS[1]]
    assert database.news().purges == []
    assert database.commit(step(4))
    database.close()


def test_without_a_database_nothing_was_removed() -> None:
    with pytest.raises(StoreError, match="nothing was removed") as caught:
        purge("postgresql://user:s3cret@127.0.0.1:1/none", SELECTIONS[0], 0.0)
    assert "s3cret" not in str(caught.value)


def test_a_turn_that_waits_for_its_evaluation_is_as_old_as_its_requests(address: str) -> None:
    trace = KEPT.key[:2]
    invocation = replace(KEPT.invocation, conversation_id="c")
    state = TraceSnapshot(trace, (1,), 0.0, 0.0, 1.0, completed=True)
    held = Changes(
        traces=(StoredTrace(state, {}),), turns=(StoredTurn(invocation, 1.0, held=True),)
    )
    with scorer(address) as database:
        assert database.commit(step(1, changes=held, heads=[head(1, trace[1])]))
    purged = purge(address, Selection(before=WALL - 50), 0.0)
    assert purged.traces == frozenset()
    assert rows(address, "SELECT trace_id FROM turns") == [(trace[1],)]
    purged = purge(address, Selection(before=WALL + 50), 0.0)
    assert purged.traces == {trace}
    assert rows(address, "SELECT trace_id FROM turns") == []

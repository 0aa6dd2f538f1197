"""`pathgauge migrate` moves what people said, and stores that a backfill has written."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.testing import span, span_id, trace_id
from support import kafka, postgres
from support.answered import answered_trace
from support.backfilled import RESULTS, at, command, configured, rows
from support.exports import tempo_json
from support.past import CRITERIA, archive
from support.running import PATHGAUGE, Collector, until

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {
    "criteria": {"failure": 0.0, "session_turns": 1},
    "sessions": {"idle": "1h", "settle": "300ms"},
    "evidence": {"keep": "all"},
}
SECONDS = 1800


@pytest.fixture
def shared() -> Iterator[dict[str, Any]]:
    """The sections of a cluster with empty topics and an empty database."""
    with kafka.running_broker() as broker, postgres.server() as database:
        topics = [broker.topic(partitions=2) for _ in range(2)]
        yield {
            "kafka": {
                "client": dict(broker.client()),
                "traces_topic": topics[0],
                "logs_topic": topics[1],
            },
            "postgres": {"conninfo": database.database()},
            "store": {},
        }


def migrate(folder: Path, store: Path, settings: dict[str, Any]) -> str:
    done = migrating(folder, store, settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def migrating(
    folder: Path, store: Path, settings: dict[str, Any]
) -> subprocess.CompletedProcess[str]:
    config = folder / "cluster.yaml"
    config.write_text(json.dumps(settings))
    move = [str(one) for one in (PATHGAUGE, "migrate", "--config", config, "--from", store)]
    return subprocess.run(move, capture_output=True, text=True, check=False)


def gauge(folder: Path, settings: dict[str, Any]) -> Collector:
    (folder / "gauge").mkdir()
    return Collector(folder / "gauge", (), ("--role", "gauge"), **settings)


def turn(name: str, *, failed: bool = False) -> bytes:
    """A run that is a conversation of its own."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": f"talk {name}",
        "pathgauge.session.end": "resolved",
    }
    error = "no" if failed else None
    return encode_request([span(name, "invoke_agent support", attributes, trace=name, error=error)])


def say(collector: Collector, **given: Any) -> str:
    status, text = collector.post_page("/api/v1/feedback", json.dumps(given).encode())
    assert status in (200, 201), text
    return str(json.loads(text)["outcome"])


def about(name: str, thumb: str, **more: Any) -> dict[str, Any]:
    return {"trace_id": trace_id(name), "span_id": span_id(name), "thumb": thumb, **more}


def asked(collector: Collector, path: str) -> Any:
    status, text = collector.get(f"/api/v1/{path}")
    assert status == 200, text
    return json.loads(text)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_people_said_moves_with_the_results(
    tmp_path: Path, shared: dict[str, Any], workers: int
) -> None:
    told = about("0", "up", rater="ann", id="click"), about("1", "down", rater="ann")
    whole = {"conversation_id": "talk 0", "thumb": "up", "time": "1970-01-01T00:00:01Z"}
    with Collector(tmp_path, **SETTINGS, store={}, workers=workers) as before:
        for number in range(4):
            assert before.post("/v1/traces", turn(f"{number}", failed=number == 1))[0] == 200
        for one in (*told, about("2", "up"), about("later", "up"), whole):
            assert say(before, **one) == "created"
        assert say(before, **about("2", "down")) == "replaced"
        assert until(lambda: asked(before, "agreement")["answers"] == {"paired": 4, "waiting": 1})
        assert until(lambda: before.value("pathgauge_sessions_ended_total") == 4)
        agreement = asked(before, "agreement")
        subjects = [f"feedback?trace_id={trace_id(name)}" for name in ("0", "1", "2", "later")] + [
            "feedback?conversation_id=talk+0"
        ]
        said = [asked(before, subject) for subject in subjects]
    settings = {**SETTINGS, **shared}
    migrate(tmp_path, tmp_path / "pathgauge-data", settings)
    with gauge(tmp_path, settings) as after:
        assert [asked(after, subject) for subject in subjects] == said
        assert asked(after, "agreement") == agreement
        # The pseudonyms, the ids of clients and the order of the answers are those of before.
        assert say(after, **told[0]) == "repeated"
        assert say(after, **about("0", "down", rater="ann")) == "replaced"
        assert say(after, **about("0", "up", rater="bob")) == "created"
        assert [one["passed"] for one in asked(after, subjects[0])["answers"]] == [True, False]
        assert until(
            lambda: (
                after.series("pathgauge_feedback_pairs", "metric")
                == {("failure",): 2.0, ("session_turns",): 1.0}
            )
        ), asked(after, "agreement")


def test_a_backfilled_store_moves_with_its_past(tmp_path: Path, shared: dict[str, Any]) -> None:
    begin = int(time.time()) - SECONDS
    past = archive(60, SECONDS, begin=begin)
    first, *others = (one.body for one in past.traces)
    bodies = map(tempo_json, [answered_trace(first, "thumbs_up"), *others])
    (tmp_path / "traces.jsonl").write_bytes(b"\n".join(bodies))
    own = json.loads(configured(tmp_path, evidence={"keep": "all"}).read_text())
    period = "--since", at(begin), "--until", at(begin + SECONDS)
    done = command(tmp_path, f"file://{tmp_path}/traces.jsonl", SECONDS, *period)
    assert done.returncode == 0, done.stderr
    store = tmp_path / "past"
    settings = {**own, **shared, "references": [str(tmp_path / "references.yaml")]}
    found = migrate(tmp_path, store, settings)
    assert f"moved {len(rows(store))} results and 0 requests" in found
    with gauge(tmp_path, settings) as after:
        assert until(lambda: after.value("pathgauge_invocations_scored_total")) == 60
        assert after.value("pathgauge_score_window_samples", agent="desk") > 20
        first_seen = "pathgauge_agent_version_first_seen_timestamp_seconds"
        for seen in after.series(first_seen).values():
            assert begin < seen < begin + 600
        newest = asked(after, "results?limit=500")["results"]
        assert len(newest) == len({row[:3] for row in rows(store, RESULTS)}) == 60
        assert {one["name"] for one in newest[0]["criteria"]} <= {*CRITERIA}
        for one in past.traces[:3]:
            [explained] = asked(after, f"results/{one.trace_id}")["results"]
            assert explained["evidence"] is not None
        assert say(after, trace_id=past.traces[1].trace_id, thumb="up") == "created"
        with psycopg.connect(shared["postgres"]["conninfo"]) as connection:
            moved = connection.execute(RESULTS).fetchall()
        assert sorted(moved) == sorted(rows(store, RESULTS))
        assert asked(after, "agreement")["answers"] == {"paired": 2}


def test_a_store_with_an_unfinished_purge_is_moved_when_that_is_finished(
    tmp_path: Path, shared: dict[str, Any]
) -> None:
    store, settings = tmp_path / "pathgauge-data", {**SETTINGS, **shared}
    with Collector(tmp_path, **SETTINGS, store={}) as before:
        for name in ("kept", "unwanted"):
            assert before.post("/v1/traces", turn(name))[0] == 200
        assert until(lambda: before.value("pathgauge_sessions_ended_total") == 2)
        with closing(sqlite3.connect(store / "pathgauge.db", isolation_level=None)) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM results").fetchall()
            words = ["purge", "--config", str(before.config), "--trace", trace_id("unwanted")]
            assert subprocess.run([PATHGAUGE, *words], check=False).returncode == 2
    refused = migrating(tmp_path, store, settings)
    assert refused.returncode != 0
    assert "found a purge that is not finished" in refused.stderr
    Collector(tmp_path, **SETTINGS, store={}).stop()
    assert "2 results" in migrate(tmp_path, store, settings)

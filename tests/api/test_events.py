"""New results arrive as server-sent events from a running collector, and a stream that was cut off
continues where it ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.api.events import MAX_STREAMS
from support.running import PATIENCE_S, Collector
from support.turns import otlp, script, trace_id, turn

pytestmark = pytest.mark.slow

RIGHT = script("refund", "lookup", "refund")
WRONG = script("refund", "refund")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    reference = {"scenario": "refund", "expected_tools": ["lookup", "refund"]}
    (tmp_path / "references.yaml").write_text(json.dumps([reference]))
    with Collector(
        tmp_path,
        references=["references.yaml"],
        store={"path": "data"},
        criteria={"tool_trajectory_avg_score": 1.0},
    ) as running:
        yield running


def send(collector: Collector, behaviour: Any) -> str:
    """Send one turn; returns its trace id."""
    spans = turn(behaviour)
    assert collector.post("/v1/traces", otlp(spans))[0] == 200
    return trace_id(spans)


@contextmanager
def stream(
    collector: Collector, query: str = "", last: str = ""
) -> Iterator[Iterator[dict[str, Any]]]:
    """The events of a stream, each with its id."""
    address = f"http://127.0.0.1:{collector.ports['metrics']}{PREFIX}/events{query}"
    headers = {"last-event-id": last} if last else {}
    with requests.get(address, headers=headers, stream=True, timeout=PATIENCE_S) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(line.decode() for line in answer.iter_lines(chunk_size=1))


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "data":
            yield {"id": found["id"], "event": found["event"], **json.loads(value)}
        elif name:
            found[name] = value


def test_new_results_arrive_while_they_are_stored(collector: Collector) -> None:
    with stream(collector, "?verdict=failed") as events:
        send(collector, RIGHT)
        failed = send(collector, WRONG)
        found = next(events)
    assert (found["event"], found["trace_id"], found["verdict"]) == ("result", failed, "failed")
    assert found["signature"] == "lookup missing"


def test_a_stream_continues_after_the_last_event_that_was_seen(collector: Collector) -> None:
    with stream(collector) as events:
        send(collector, RIGHT)
        first = next(events)
    missed = send(collector, WRONG)
    with stream(collector, last=first["id"]) as events:
        assert next(events)["trace_id"] == missed


def test_a_stream_that_was_opened_on_a_longer_store_has_the_results_of_this_one(
    collector: Collector,
) -> None:
    with stream(collector, last="50000") as events:
        sent = send(collector, RIGHT)
        assert next(events)["trace_id"] == sent


def test_a_collector_with_open_streams_stops_in_time_and_ends_them(collector: Collector) -> None:
    with stream(collector) as events:
        assert collector.stop() == 0
        assert list(events) == []
    assert [line["event"] for line in collector.log() if line["level"] == "error"] == []


def test_there_is_a_limit_on_streams(collector: Collector) -> None:
    address = f"http://127.0.0.1:{collector.ports['metrics']}{PREFIX}/events"
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=MAX_STREAMS + 1))
        answers = [
            session.get(address, stream=True, timeout=PATIENCE_S) for _ in range(MAX_STREAMS + 1)
        ]
        statuses = [answer.status_code for answer in answers]
        for answer in answers:
            answer.close()
    assert statuses == [200] * MAX_STREAMS + [503]

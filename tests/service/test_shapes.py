"""All captures, in any order and in any batches: one process, `workers: 2` and a cluster find the
same, to the last value.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.offline.trace_files import read_path
from support.repository import CAPTURES
from support.running import until
from support.shapes import SHAPES, Shape, Stored, started

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SHAPES_SEED", "1"))
LARGEST_BATCH = 80
SPREAD = 0.05
"""How far from their place in the order records may be, as a share of all."""
SHARED_S = 12.0
"""Until all scorers of a cluster know what the others have learnt."""
PATIENCE_S = 300.0
REFERENCES: list[dict[str, Any]] = [
    {
        "scenario": "multi-turn",
        "turns": [
            {"expected_tools": ["lookup_order"]},
            {"expected_tools": ["check_refund_policy"], "expected_response": "Yes, 12 days left."},
            {"expected_tools": [], "expected_response": "You're welcome!"},
        ],
    },
    {
        "scenario": "refund-basic",
        "expected_tools": ["lookup_order", "check_refund_policy", "process_refund"],
        "expected_response": "Your order was refunded.",
    },
    {"scenario": "refund_damaged", "expected_tools": ["lookup_order", "issue_refund"]},
    {"scenario": "weather-parallel", "expected_tools": ["get_weather"] * 2},
    {"scenario": "currency-tool-error", "expected_tools": ["convert_currency"] * 2},
    {"scenario": "sc1", "expected_tools": ["lookup_order", "failing"]},
]
SETTINGS: dict[str, Any] = {
    "criteria": {
        "tool_trajectory_avg_score": 1.0,
        "tool_trajectory_f1": 0.8,
        "response_match_score": 0.5,
        "failure": None,
        "tool_calls": None,
        "total_tokens": None,
    },
    "assembly": {"settle": "3s", "idle": "4s", "max_age": "2m", "late_ttl": "10m"},
    "conversations": {"idle": "1h"},
    "evidence": {"keep": "all"},
}

Record = Span | LogRecord


def records(part: int) -> list[list[Record]]:
    """The records of each trace of the captures, with other ids in each of two parts.

    Captures have equal conversation ids. Here each has its own, so that its turns are numbered.
    Captures of several frameworks have an agent of one name, which each show something else: here
    each has its own, and so has a capture without the spans of models.
    """
    folders = [file.parent for file in sorted(CAPTURES.glob("*/*/traces.binpb.gz"))]
    agents = list(dict.fromkeys(map(_instrumented, folders)))
    numbers: dict[str, int] = {}
    traces: dict[str, dict[bytes, Record]] = {}
    for folder in folders:
        capture = read_path(folder)
        every: list[Record] = [*capture.spans, *capture.logs]
        number = numbers.setdefault(min(one.trace_id for one in every), len(numbers))
        conversation = rb"conv-\1-%04d" % (1000 * part + number)
        agent = b"refund_%04d" % agents.index(_instrumented(folder))
        for one in every:
            found = bytes.fromhex(one.trace_id)
            raw = one.raw.replace(found, bytes([found[0] ^ part, *found[1:]]))
            raw = re.sub(rb"conv-(s\w+)-0001", conversation, raw).replace(b"refund_desk", agent)
            traces.setdefault(one.trace_id, {})[raw] = type(one)(raw, one.resource, one.scope)
    return [list(found.values()) for found in traces.values()]


def _instrumented(folder: Path) -> Path:
    """What captures with the same instrumentations have in common."""
    return folder if "without" in folder.name else folder.parent


def requests(traces: list[list[Record]], random: Random) -> Iterator[tuple[str, bytes]]:
    """Requests in a random order, in which records of a trace are near each other, more or less."""
    placed = []
    for trace in traces:
        place = random.random()
        placed += [(place + SPREAD * random.random(), one) for one in trace]
    placed.sort(key=lambda pair: pair[0])
    left = [one for _, one in placed]
    while left:
        size = random.randint(1, LARGEST_BATCH)
        batch, left = left[:size], left[size:]
        spans = [one for one in batch if isinstance(one, Span)]
        logs = [one for one in batch if isinstance(one, LogRecord)]
        if spans:
            yield "/v1/traces", encode_request(spans)
        if logs:
            yield "/v1/logs", encode_request(logs)


def send(shape: Shape, traces: list[list[Record]], random: Random) -> None:
    """Send everything, and wait until nothing changes any more."""
    for endpoint, body in requests(traces, random):
        assert until(lambda: shape.receiver.post(endpoint, body)[0] == 200)  # noqa: B023
    assert shape.settles(PATIENCE_S)


def test_all_captures_in_any_order_and_batches_have_the_same_results_in_every_shape(
    tmp_path: Path,
) -> None:
    print(f"SHAPES_SEED={SEED}")
    (tmp_path / "references.yaml").write_text(json.dumps(REFERENCES))
    # First the same under other ids: whether telemetry is missing is judged by what an agent has
    # shown before, and each scorer learns on its own. So only the second time, the order of arrival
    # does not matter.
    first, second = records(1), records(0)
    compared = {one.trace_id for trace in second for one in trace}
    settings = {**SETTINGS, "references": [str(tmp_path / "references.yaml")]}

    def stored(number: int, name: str) -> Stored:
        random = Random(SEED + number)
        with started(name, tmp_path / name, settings) as shape:
            send(shape, first, random)
            time.sleep(SHARED_S)
            send(shape, second, random)
            return of_traces(shape.stored(), compared)

    # Beside each other, because most of the time they wait for traces to be complete.
    with ThreadPoolExecutor(len(SHAPES)) as beside:
        found = dict(zip(SHAPES, beside.map(stored, count(), SHAPES), strict=True))
    one = found["one process"]
    for name in SHAPES[1:]:
        assert differences(one, found[name]) == [], name
    assert len(one.results) > 300
    assert {0, 1, 2} <= {evidence.get("turn_index") for evidence in one.evidence.values()}


def of_traces(stored: Stored, trace_ids: Set[str]) -> Stored:
    """What was found in these traces; each key has the id of its trace."""
    parts = (stored.results, stored.evidence, stored.turns)
    return Stored(*({key: part[key] for key in part if trace_ids & {*key}} for part in parts))


def differences(one: Stored, other: Stored) -> list[str]:
    """Where results, evidence and turns of conversations are not equal."""
    return [
        f"{kind} {key}{change}"
        for kind, ours, theirs in (
            ("result", one.results, other.results),
            ("evidence", one.evidence, other.evidence),
            ("turn", one.turns, other.turns),
        )
        for key in sorted(ours.keys() | theirs.keys())
        for change in changes(ours.get(key), theirs.get(key))
    ]


def changes(ours: Any, theirs: Any) -> Iterator[str]:
    """The innermost values that are not equal, each with the path to it."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            for change in changes(ours.get(name), theirs.get(name)):
                yield f".{name}{change}"
    elif ours != theirs:
        yield f": {ours} != {theirs}"

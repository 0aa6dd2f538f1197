"""How many function calls a span takes, stage by stage, compared with those of the last release.

The ratios to a bare receiver differ by a quarter from run to run. These numbers do not, so they
show also what became a little more expensive. They differ between versions of Python.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.call_counter import OTHER, CallCounter
from benchmarks.servers import CONFIG, REFERENCE
from pathgauge.collector import config as configuration
from pathgauge.collector.config.active import resolve
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.evaluations.fingerprint import fingerprint
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations.reader import readings
from pathgauge.collector.core.otlp import DecodeLimits
from pathgauge.collector.core.otlp.batch import Origin
from pathgauge.collector.core.otlp.decode_batch import decode_batch
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.traces import Assembler
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from support.dialects import INSTALLED
from support.load import SPANS, invocation, request, with_new_ids

FILE = Path(__file__).with_name("calls.json")
TOLERANCE = 0.15
STAGES = (
    ("decode", decode_batch),
    ("assemble", Assembler.feed),
    ("assemble", Assembler.expire),
    ("read", readings),
    ("score", Evaluator.evaluate),
    ("fingerprint", fingerprint),
    ("sink", PrometheusSink.publish),
)
REQUESTS = 3
ORIGIN = Origin("", "grpc", "traces", "protobuf")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SETTLED_S = 100.0
WALL_S = 1_795_000_000.0


@pytest.mark.parametrize("load", ["mixed", "agents"])
def test_a_span_takes_no_more_calls_than_at_the_last_release(tmp_path: Path, load: str) -> None:
    found = _calls_of_a_span(tmp_path, load)
    recorded = json.loads(FILE.read_text())
    if "BENCH_RECORD" in os.environ:
        recorded.setdefault(PYTHON, {})[load] = found
        FILE.write_text(json.dumps(recorded, indent=2) + "\n")
    if PYTHON not in recorded:
        pytest.skip(f"nothing was recorded for Python {PYTHON}: BENCH_RECORD=1 make bench")
    before = recorded[PYTHON][load]
    print(f"\ncalls of a span, {load}: {found}")
    assert found.keys() == before.keys()
    worse = {
        stage: f"{calls:g} calls, were {before[stage]:g}"
        for stage, calls in found.items()
        if calls > before[stage] * (1 + TOLERANCE)
    }
    assert worse == {}


def test_a_call_counts_for_the_innermost_stage() -> None:
    def inner() -> int:
        return len("text")

    def outer() -> int:
        return abs(inner())

    counter = CallCounter((("outer", outer), ("inner", inner)))
    with counter.counting():
        outer()
    del counter.calls[OTHER]  # the end of the context
    assert counter.calls == {"outer": 2, "inner": 2}


def _calls_of_a_span(folder: Path, load: str) -> Mapping[str, float]:
    """By stage, of spans whose shape was seen before, as that of nearly all spans of a service."""
    pipeline, sink = _service(folder)
    random.seed(0)  # other ids and texts are other words for the scorers
    invocations = SPANS // len(invocation("0", load))
    template = request(invocations, load).SerializeToString()
    bodies = [with_new_ids(template, invocations) for _ in range(1 + REQUESTS)]
    counter = CallCounter(STAGES)
    _process(bodies[0], pipeline, sink, 0.0)
    with counter.counting():
        for number, body in enumerate(bodies[1:], start=1):
            _process(body, pipeline, sink, 1_000.0 * number)
    spans = REQUESTS * SPANS
    return {stage: round(calls / spans, 1) for stage, calls in sorted(counter.calls.items())}


def _service(folder: Path) -> tuple[Pipeline, PrometheusSink]:
    """Configured as for the table of throughput."""
    (folder / "pathgauge.yaml").write_text(CONFIG % "memory")
    (folder / "reference.yaml").write_text(REFERENCE)
    setup = resolve(configuration.load(folder / "pathgauge.yaml"))
    telemetry = InternalTelemetry()
    pipeline = Pipeline(INSTALLED, setup.evaluator, setup.references, telemetry)
    return pipeline, PrometheusSink(setup.evaluator, setup.references, telemetry)


def _process(body: bytes, pipeline: Pipeline, sink: PrometheusSink, now: float) -> None:
    """One request, from its bytes to the gauges, in one thread and without a store."""
    batch = decode_batch(ORIGIN, body, DecodeLimits()).batch
    events = [*pipeline.feed(batch.spans, (), now), *pipeline.expire(now + SETTLED_S)]
    assert len(events) == len({span.trace_id for span in batch.spans})
    for event in events:
        assert isinstance(event, Evaluation)
        sink.publish(event, WALL_S + now)

"""What it costs to read each dialect, beside the plain conventions, in one run: from spans in the
assembler to scored invocations.

Captures of the repository are read again and again, one dialect after the other in a random order,
and the fastest turn of each counts, since these machines are noisy. `make bench` takes long enough
to mean something.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from random import Random
from statistics import mean

import pytest

from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.trace_files import TraceFiles, read_path
from support.dialects import INSTALLED, read
from support.repository import CAPTURES

LONG = "BENCH_SECONDS" in os.environ
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.3"))
ROUNDS = 6 if LONG else 1
"""At least: on a busy machine a few seconds are a single round, whose times mean nothing."""
MAX_ROUNDS = 5 * ROUNDS
"""While a dialect seems too slow. What disturbs the machine may last longer than six rounds."""
PLAIN = "genai"
MAX_TIMES_PLAIN = 1.5
COSTLY = {"haystack": 1.7, "litellm": 2.1}
"""Whose spans hold more. LiteLLM writes 80 attributes on one, and each prompt a second time as
Python `repr`. OpenInference writes the messages of Haystack as `repr`.
"""

MAX_BYTES = 32_768
"""A larger span measures how fast JSON is parsed."""


Scenarios = dict[str, list[TraceFiles]]


def captures() -> dict[str, Scenarios]:
    """The captures of each dialect by scenario."""
    found: dict[str, Scenarios] = defaultdict(lambda: defaultdict(list))
    for path in sorted(CAPTURES.glob("*/*/invocations.json")):
        dialects = {one["dialect"] for one in json.loads(path.read_text())}
        files = read_path(path.parent)
        files.logs.clear()  # many repeat what is on the spans
        if len(dialects) == 1 and max(len(span.raw) for span in files.spans) < MAX_BYTES:
            found[dialects.pop()][path.parent.name].append(files)
    return found


def fresh(files: TraceFiles) -> list[Span]:
    """The spans as they come from a receiver, nothing of them decoded."""
    return [Span(span.raw, span.resource, span.scope) for span in files.spans]


def time_reading(files: TraceFiles) -> float:
    spans: dict[str, list[Span]] = defaultdict(list)
    for span in fresh(files):
        spans[span.trace_id].append(span)
    traces = [Trace("", trace_id, tuple(some)) for trace_id, some in spans.items()]
    start = time.perf_counter()
    for trace in traces:
        read(trace)
    return time.perf_counter() - start


def time_pipeline(files: TraceFiles) -> float:
    pipeline, spans = (
        Pipeline(INSTALLED, Evaluator(()), ReferenceSet(), InternalTelemetry()),
        fresh(files),
    )
    start = time.perf_counter()
    pipeline.feed(spans, (), 0.0)
    pipeline.drain(10.0)
    return time.perf_counter() - start


class Cost:
    """Seconds a span of each scenario, the fastest so far."""

    def __init__(self, scenarios: Scenarios) -> None:
        self.scenarios = scenarios
        self.spans = {
            name: sum(len(one.spans) for one in files) for name, files in scenarios.items()
        }
        self.reading = dict.fromkeys(scenarios, float("inf"))
        self.pipeline = dict.fromkeys(scenarios, float("inf"))

    def measure(self) -> None:
        for name, files in self.scenarios.items():
            self.reading[name] = min(
                self.reading[name], sum(map(time_reading, files)) / self.spans[name]
            )
            self.pipeline[name] = min(
                self.pipeline[name], sum(map(time_pipeline, files)) / self.spans[name]
            )

    def of_run(self, scenario: str) -> float:
        """Seconds a run: one agent's work is few large spans in one dialect and many small ones in
        another.
        """
        return self.pipeline[scenario] * self.spans[scenario] / len(self.scenarios[scenario])


def times_plain(cost: Cost, plain: Cost) -> tuple[float, float]:
    """By span, and by run of an agent."""
    common = [name for name in cost.pipeline if name in plain.pipeline]
    beside = mean(plain.pipeline[name] for name in common or plain.pipeline)
    of_span = mean(cost.pipeline[name] for name in common or cost.pipeline) / beside
    if not common:
        return of_span, of_span
    return of_span, mean(cost.of_run(name) / plain.of_run(name) for name in common)


def too_slow(costs: Mapping[str, Cost]) -> dict[str, tuple[float, float]]:
    """Dialects beyond their bound."""
    times = {name: times_plain(cost, costs[PLAIN]) for name, cost in costs.items()}
    return {
        name: found
        for name, found in times.items()
        if min(found) > COSTLY.get(name, MAX_TIMES_PLAIN)
    }


def report(costs: Mapping[str, Cost]) -> None:
    print(f"\n{'':18}{'':7}{'us a span, to':>18}{'times plain, by':>18}")
    print(f"{'dialect':18}{'spans':>7}{'read':>9}{'score':>9}{'span':>9}{'run':>9}")
    for name, cost in sorted(costs.items()):
        reading, pipeline = mean(cost.reading.values()) * 1e6, mean(cost.pipeline.values()) * 1e6
        of_span, of_run = times_plain(cost, costs[PLAIN])
        print(
            f"{name:18}{sum(cost.spans.values()):7}{reading:9.1f}{pipeline:9.1f}{of_span:9.2f}{of_run:9.2f}"
        )


@pytest.mark.slow
def test_reading_any_dialect_costs_no_more_than_half_as_much_again_as_the_conventions() -> None:
    costs = {dialect: Cost(scenarios) for dialect, scenarios in captures().items()}
    end, rounds = time.monotonic() + SECONDS, 0
    while rounds < ROUNDS or time.monotonic() < end or (rounds < MAX_ROUNDS and too_slow(costs)):
        for name in Random(rounds).sample(sorted(costs), len(costs)):
            costs[name].measure()
        rounds += 1
    report(costs)
    assert not too_slow(costs) or not LONG

"""Fills a Prometheus sink with scenarios, scrapes it, and prints what that cost as JSON.

A process of its own, so that its memory is that of the sink. Usage: `scrape_load.py SCENARIOS`.
"""

from __future__ import annotations

import gc
import gzip
import json
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.datastructures import Headers

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.service.process_tuning import tune
from pathgauge.collector.service.web.exposition import exposition
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score
from support.sink_harness import Answer, generate_openmetrics

CRITERIA = 5
COMMIT = 25
"""Evaluations of one commit."""
SCRAPED_S = 3.0
"""How long evaluations are published without scrapes, and how long with them."""
SCRAPE_EVERY_S = 1.0
OPENMETRICS = Headers(
    {"accept": "application/openmetrics-text; version=1.0.0", "accept-encoding": "gzip"}
)
UNLIMITED = 10**9


@dataclass(frozen=True, slots=True)
class Named(Answer):
    """One of several scorers between 0 and 1."""

    number: int = 0

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score((int(actual.span_id, 16) * (self.number + 3) % 11) / 10)


class Load:
    """A sink, and evaluations for it."""

    def __init__(self, scenarios: int) -> None:
        self._names = [f"scenario-{number:05d}" for number in range(scenarios)]
        self._references = ReferenceSet(Reference(name, (ReferenceTurn(),)) for name in self._names)
        self._evaluator = Evaluator(
            tuple(
                Criterion(f"criterion_{number}", Named(number), 0.5) for number in range(CRITERIA)
            )
        )
        self.now = time.time()
        self._published = 0
        self.sink = PrometheusSink(
            self._evaluator,
            self._references,
            InternalTelemetry(),
            limits=LabelLimits(max_series=UNLIMITED, max_series_total=UNLIMITED),
            metrics=DurableMetrics(),
            drift=Drift(),
            clock=lambda: self.now,
        )

    def evaluations(self, step: int = 1) -> Iterator[Evaluation]:
        """One evaluation of every `step`-th scenario."""
        for name in self._names[::step]:
            self._published += 1
            invocation = Invocation(
                f"{self._published:032x}",
                f"{self._published:016x}",
                "test",
                agent="agent",
                agent_version="1.0",
                scenario_id=name,
                start_ns=1,
                end_ns=2,
            )
            match = self._references.match(invocation)
            yield with_failure(self._evaluator.evaluate(invocation, match))

    def publish(self, evaluations: list[Evaluation]) -> None:
        """Publish and commit."""
        for evaluation in evaluations:
            self.sink.publish(evaluation, self.now)
        self.commit()

    def commit(self) -> None:
        self.sink.pending()
        self.sink.commit()


def batches(evaluations: list[Evaluation]) -> Iterator[list[Evaluation]]:
    for start in range(0, len(evaluations), COMMIT):
        yield evaluations[start : start + COMMIT]


def fill(load: Load) -> float:
    """CPU seconds that the first evaluation of each scenario took."""
    evaluations = list(load.evaluations())
    began = time.process_time()
    for batch in batches(evaluations):
        load.publish(batch)
    return time.process_time() - began


def scrape(load: Load) -> tuple[float, bytes]:
    """CPU seconds of a scrape, and its body."""
    load.now += 15
    began = time.process_time()
    answer = exposition(load.sink.registry, OPENMETRICS)
    return time.process_time() - began, bytes(answer.body)


def memory(key: str = "VmRSS") -> int:
    """Bytes in memory now; with `VmHWM`, the most since `start_memory`."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(key)) * 1024


def start_memory() -> int:
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return memory()


def pauses(load: Load, *, scraped: bool) -> tuple[list[float], int]:
    """How long each commit with its evaluations took, beside scrapes or not, and the number."""
    stopped = threading.Event()

    def scrapes() -> None:
        while not stopped.is_set():
            scrape(load)
            stopped.wait(SCRAPE_EVERY_S)

    evaluations = list(load.evaluations(step=10))
    found: list[float] = []
    with ThreadPoolExecutor(1) as other:
        done = other.submit(scrapes) if scraped else None
        end, number = time.perf_counter() + SCRAPED_S, 0
        while time.perf_counter() < end:
            number += 1
            key = f"{load.now}-{number}"
            batch = evaluations[number % len(evaluations)]
            again = replace(batch, invocation=replace(batch.invocation, trace_id=key))
            began = time.perf_counter()
            load.publish([again])
            found.append(time.perf_counter() - began)
            time.sleep(0.001)  # the thread waits for its queue
        stopped.set()
        if done is not None:
            done.result()
    return sorted(found), len(found)


def main(scenarios: int) -> None:
    tune()
    load = Load(scenarios)
    figures: dict[str, float] = {"first_sight_us": fill(load) / scenarios * 1e6}
    before = start_memory()
    figures["first_s"], body = scrape(load)
    figures["gzip_bytes"] = len(body)
    figures["growth_bytes"] = memory("VmHWM") - before
    figures["unchanged_s"], _ = scrape(load)
    load.publish(list(load.evaluations(step=100)))
    figures["changed_s"], _ = scrape(load)
    quiet, _ = pauses(load, scraped=False)
    beside, _ = pauses(load, scraped=True)
    for name, found in (("quiet", quiet), ("beside", beside)):
        figures[f"{name}_publications"] = len(found)
        figures[f"{name}_p99_s"] = found[len(found) * 99 // 100]
        figures[f"{name}_longest_s"] = found[-1]
    before = start_memory()
    began = time.process_time()
    text = generate_openmetrics(load.sink.registry)
    figures["library_s"] = time.process_time() - began
    figures["library_growth_bytes"] = memory("VmHWM") - before
    figures["library_bytes"] = len(text)
    whole = gzip.decompress(body)
    figures["bytes"], figures["lines"] = len(whole), whole.count(b"\n")
    plain = exposition(load.sink.registry, Headers())
    figures["plain_bytes"] = int(plain.headers["content-length"])
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main(int(sys.argv[1]))

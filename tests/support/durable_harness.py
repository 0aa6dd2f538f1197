"""A Prometheus sink with a store, and what a restart restores of it."""

from __future__ import annotations

import json
import random
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.recent import Recent
from pathgauge.collector.core.evaluations.series import series_of
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from support.sink_harness import REFERENCES, SinkHarness

DAY_S = 86_400.0
LIVE = (
    "process_",
    "python_",
    "pathgauge_config_",
    "pathgauge_traces_open",
    "pathgauge_receiver_requests",
    "pathgauge_receiver_refused",
)
"""Series that no restart restores."""


class DurableHarness(SinkHarness):
    """A sink whose counts and evaluations are stored by `commit`."""

    def __init__(self, *criteria: Criterion, **options: Any) -> None:
        self.metrics = DurableMetrics()
        self.options = options
        self.rows: dict[tuple[str, ...], list[float]] = {}
        self.recent: dict[EvaluationKey, Recent] = {}
        super().__init__(
            *criteria,
            metrics=self.metrics,
            **{"windows": Windows(size=5), **options},
        )

    def publish_evaluation(self, evaluation: Evaluation) -> Evaluation:
        super().publish_evaluation(evaluation)
        agent, scenario, _ = series_of(evaluation)
        reference = evaluation.match.reference
        scores = {
            result.criterion.name: result.score.value
            for result in evaluation.results
            if result.score.value is not None
        }
        first = self.recent.get(evaluation.key)
        version = reference.version if reference else None
        at, agent_version = first.at if first else self.now, evaluation.invocation.agent_version
        judges = {
            result.criterion.name: result.criterion.judge
            for result in evaluation.results
            if result.criterion.judge
        }
        self.recent[evaluation.key] = Recent(
            evaluation.key, agent, scenario, version, at, scores, agent_version, judges
        )
        return evaluation

    def commit(self) -> None:
        for key, state in json.loads(json.dumps(self.sink.pending())):
            if state is None:
                self.rows.pop(tuple(key), None)
            else:
                self.rows[tuple(key)] = state
        self.sink.commit()

    def restarted(
        self, *criteria: Criterion, references: ReferenceSet = REFERENCES, **options: Any
    ) -> DurableHarness:
        """The next process, at the same time."""
        fresh = {
            "telemetry": InternalTelemetry(),
            "windows": Windows(size=5),
            "references": references,
        }
        after = DurableHarness(
            *(criteria or self.evaluator.criteria), **{**self.options, **fresh, **options}
        )
        after.now, after.published = self.now, self.published
        after.rows, after.recent = dict(self.rows), dict(self.recent)
        rows = [Row(key, state) for key, state in self.rows.items()]
        random.Random(len(rows)).shuffle(rows)
        newest = tuple(reversed(self.recent.values()))
        after.sink.restore(
            rows,
            lambda wants: (one for one in newest if wants(one.key[0], one.agent, one.scenario)),
            self.now,
        )
        return after

    def exposition(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        samples = [
            sample
            for family in parse_text(generate_latest(self.sink.registry).decode())
            for sample in family.samples
        ]
        return {
            (s.name, frozenset(s.labels.items())): s.value
            for s in samples
            if not s.name.startswith(LIVE)
        }

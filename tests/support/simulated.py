"""A collector in virtual time: spans go through the real pipeline and the real sink, which is
scraped every minute, and promtool runs the shipped rules on what was scraped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.service.canary import TENANT as CANARY, WithoutCanary
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.testing import EPOCH_S
from support.courses import MAJOR, Values, named, written
from support.dialects import INSTALLED
from support.promtool import rule_groups, run

MINUTE_S = 60.0
ALWAYS_FIRING = "PathgaugeWatchdog"

Alert = tuple[str, str, str]
"""Its name, and the labels `agent` and `metric`; `""` without one."""

_SAMPLE = re.compile(r"\{([^{}]*)\}")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class SimulatedCollector:
    """Takes traces minute by minute, and remembers every scrape."""

    def __init__(
        self, references: ReferenceSet, *criteria: Criterion, drift: Drift | None = None
    ) -> None:
        telemetry, evaluator = InternalTelemetry(), Evaluator(criteria)
        self._pipeline = Pipeline(
            INSTALLED, evaluator, references, telemetry, synthetic_tenants=frozenset({CANARY})
        )
        self._minutes, self._seconds = 0, 0.0
        sink = PrometheusSink(
            evaluator,
            references,
            telemetry,
            clock=lambda: EPOCH_S + self._now,
            records=self._pipeline.records.shown,
            content_settings=INSTALLED.content_settings,
            drift=drift,
        )
        self._registry: CollectorRegistry = sink.registry
        self._sink = WithoutCanary("prometheus", sink)
        self._series: dict[str, list[float | None]] = {}

    @property
    def _now(self) -> float:
        return self._minutes * MINUTE_S + self._seconds

    def minute(self, traces: Iterable[list[Span]]) -> None:
        """Process the traces of one minute as soon as each is due, and scrape at its end."""
        for spans in traces:
            events = self._pipeline.feed(spans, (), self._now)
            self._publish(events)
        began, end = self._now, self._now + MINUTE_S
        while (due := self._pipeline.deadline()) is not None and due < end:
            self._seconds = max(due - began, self._seconds)
            self._publish(self._pipeline.expire(self._now))
        self._pipeline.records.pending()
        self._pipeline.records.commit()
        self._minutes, self._seconds = self._minutes + 1, 0.0
        self._scrape()

    def alerts(self, folder: Path, minutes: int) -> set[Alert]:
        """The alerts that fired in the last minutes, according to the shipped rules."""
        always: Values = [1.0] * self._minutes
        series: dict[str, Values] = {named("up"): always, **self._series}
        test = {
            "interval": "1m",
            "input_series": written(series),
            "promql_expr_test": [
                {
                    "expr": "count by (alertname, agent, metric) (count_over_time("
                    f'ALERTS{{alertstate="firing",alertname!="{ALWAYS_FIRING}"}}[{minutes}m]))',
                    "eval_time": f"{self._minutes - 1}m",
                    "exp_samples": [],
                }
            ],
        }
        complaints = run(folder, rule_groups(), test)
        assert complaints == "SUCCESS" or "got:" in complaints, complaints
        return {
            (labels["alertname"], labels.get("agent", ""), labels.get("metric", ""))
            for labels in (dict(_LABEL.findall(one)) for one in _SAMPLE.findall(complaints))
            if "alertname" in labels
        }

    def _publish(self, events: Iterable[object]) -> None:
        for event in events:
            if isinstance(event, Evaluation):
                self._sink.publish(event, EPOCH_S + self._now)
            assert isinstance(event, Evaluation | ConversationResult), event

    def _scrape(self) -> None:
        for family in self._registry.collect():
            for sample in family.samples:
                if sample.name.startswith("pathgauge_") and not sample.name.endswith("_created"):
                    labels = {**sample.labels, **MAJOR}
                    values = self._series.setdefault(named(sample.name, **labels), [])
                    values += [None] * (self._minutes - 1 - len(values))
                    values.append(sample.value)

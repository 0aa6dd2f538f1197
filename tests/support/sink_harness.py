"""A Prometheus sink with an evaluator, references and a clock. Tests choose the scores, and read
what Prometheus would scrape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from prometheus_client import generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Exemplar

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.scorers.types import Invocation, Reason, Reference, ReferenceTurn, Score, Scorer

NOW = 1_800_000_000.0
LABELS = (
    "tenant",
    "agent",
    "scenario",
    "metric",
    "baseline",
    "agent_version",
    "count",
    "outcome",
    "reason",
    "min",
    "max",
    "direction",
    "match",
    "status",
    "type",
    "le",
    "against",
    "kind",
    "tool",
    "argument",
)
"""The order in which these tests write label values. The exposition sorts them by name."""

generate_openmetrics, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
parse_openmetrics: Callable[[str], Iterable[Metric]] = openmetrics.text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class Answer:
    """Takes its score from the final response: a number, a reason, or a text that makes it fail."""

    name: ClassVar[str] = "answer"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        answer: Any = actual.final_response
        try:
            return Score(float(answer))
        except ValueError:
            return Score.not_evaluated(answer)


@dataclass(frozen=True, slots=True)
class Rating(Answer):
    name: ClassVar[str] = "rating"
    low: ClassVar[float] = 1.0
    high: ClassVar[float] = 5.0


@dataclass(frozen=True, slots=True)
class Waste(Answer):
    name: ClassVar[str] = "waste"
    higher_is_better: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Seconds(Answer):
    name: ClassVar[str] = "seconds"
    high: ClassVar[float] = math.inf
    higher_is_better: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Trajectory(Answer):
    name: ClassVar[str] = "trajectory"
    needs_reference: ClassVar[bool] = True


def ranged(low: float, high: float, *, higher_is_better: bool) -> Scorer:
    """A scorer that needs a reference, with this range and direction."""
    scorer = type(
        "Ranged", (Trajectory,), {"low": low, "high": high, "higher_is_better": higher_is_better}
    )()
    assert isinstance(scorer, Scorer)
    return scorer


ANSWER = Criterion("answer", Answer(), 0.5)
REFERENCES = ReferenceSet(
    [
        Reference("refund", (ReferenceTurn(),)),
        Reference("order", (ReferenceTurn(), ReferenceTurn())),
    ]
)


class SinkHarness:
    """A sink, what it needs, and a clock that shows `now`."""

    def __init__(
        self,
        *criteria: Criterion,
        telemetry: InternalTelemetry | None = None,
        references: ReferenceSet = REFERENCES,
        **options: Any,
    ) -> None:
        self.now = NOW
        self.telemetry = telemetry or InternalTelemetry()
        self.evaluator = Evaluator(criteria or (ANSWER,))
        self.references = references
        self.sink = PrometheusSink(
            self.evaluator,
            references,
            self.telemetry,
            **{"min_samples": 1, "clock": lambda: self.now, **options},
        )
        self.published = 0

    def invocation(self, answer: float | Reason | str = 1.0, **fields: Any) -> Invocation:
        self.published += 1
        number = self.published
        known = {
            "agent": "planner",
            "scenario_id": "refund",
            "final_response": str(answer),
            **fields,
        }
        return Invocation(f"{number:032x}", f"{number:016x}", "test", **known)

    def publish(self, answer: float | Reason | str = 1.0, **fields: Any) -> Evaluation:
        invocation = self.invocation(answer, **fields)
        return self.publish_evaluation(
            self.evaluator.evaluate(invocation, self.references.match(invocation))
        )

    def revise(self, earlier: Evaluation, answer: float, **fields: Any) -> Evaluation:
        """Publish a revision with another answer, as after late spans."""
        same = replace(earlier.invocation, final_response=str(answer), **fields)
        return self.publish_evaluation(
            self.evaluator.evaluate(same, earlier.match, revision=earlier.revision + 1)
        )

    def publish_evaluation(self, evaluation: Evaluation) -> Evaluation:
        self.sink.publish(with_failure(evaluation), self.now)
        return evaluation

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        """The samples called `name`: number by label values in the order of `LABELS`."""
        text = generate_latest(self.sink.registry).decode()
        samples = [
            sample
            for family in parse_text(text)
            for sample in family.samples
            if sample.name == name
        ]
        return {
            tuple(value for _, value in sorted(s.labels.items(), key=label_order)): s.value
            for s in samples
        }

    def exemplars(self, name: str) -> list[tuple[Mapping[str, str], Exemplar]]:
        text = generate_openmetrics(self.sink.registry).decode()
        samples = [
            sample
            for family in parse_openmetrics(text)
            for sample in family.samples
            if sample.name == name
        ]
        return [
            (sample.labels, sample.exemplar) for sample in samples if sample.exemplar is not None
        ]


def with_turns(*references: Reference) -> ReferenceSet:
    """References with one empty turn each, unless they have turns."""
    return ReferenceSet(
        replace(reference, turns=reference.turns or (ReferenceTurn(),)) for reference in references
    )


def label_order(label: tuple[str, str]) -> int:
    return LABELS.index(label[0]) if label[0] in LABELS else len(LABELS)

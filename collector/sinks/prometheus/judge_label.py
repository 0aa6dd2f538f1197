"""The label `judge`: what criteria say of their judges comes in, label values and series go out.

Another judge, or another wording of its question, scores otherwise, which is no change of the
agent. So series of scores that a model gave name the judge. All others have no such label, as to
Prometheus one that is empty is one that is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics, Family, T
from pathgauge.collector.sinks.prometheus.labels import NAME_BYTES, label_value

JUDGE = "judge"
"""The last label of its series, so that values without it are shorter by one."""


def judge_value(judge: str) -> str:
    """`model@template` as a value of the label: the name of a model is cut to length, not the
    template.
    """
    model, at, template = judge.rpartition("@")
    return label_value(model, NAME_BYTES) + at + label_value(template, NAME_BYTES)


def with_judge(values: tuple[str, ...], judge: str) -> tuple[str, ...]:
    """Label values with the judge at their end, if there is one."""
    return (*values, judge_value(judge)) if judge else values


def judges_of(criteria: Iterable[Criterion]) -> frozenset[str]:
    """All values of the label that these criteria have."""
    return frozenset(judge_value(criterion.judge) for criterion in criteria if criterion.judge)


class ByJudge(Generic[T]):
    """The series of a family, and under the same name those with a judge."""

    def __init__(self, metrics: DurableMetrics, family: Family[T]) -> None:
        self._without = family
        self._with = metrics.beside(family, JUDGE)

    def of(self, judge: str, *labels: str) -> T:
        """The series with these label values and this judge, if it has one; begun at 0 if there is
        none.
        """
        return self._with.of(*labels, judge_value(judge)) if judge else self._without.of(*labels)

    def keep(self, wanted: Collection[tuple[str, ...]]) -> None:
        """Drop the series whose label values do not begin with any of `wanted`, as `Family.keep`."""
        self._without.keep(wanted)
        self._with.keep(wanted)

    def keep_judges(self, judges: Collection[str]) -> None:
        """Drop the series with other judges."""
        self._with.drop([tally.labels for tally in self._with if tally.labels[-1] not in judges])


class Judges:
    """The judges of the criteria in force."""

    def __init__(
        self, criteria_for: Callable[[str], Iterable[Criterion]], everywhere: Iterable[Criterion]
    ) -> None:
        """`criteria_for` gives the criteria of a scenario by its label; those of `everywhere` count
        where it has none of the name.
        """
        self._criteria_for = criteria_for
        self._everywhere = tuple(everywhere)
        self._known: dict[str, dict[str, str]] = {}

    def of(self, scenario: str, metric: str) -> str:
        """The judge of a metric in a scenario; `""` without one."""
        known = self._known.get(scenario)
        if known is None:
            criteria = (*self._everywhere, *self._criteria_for(scenario))
            known = self._known[scenario] = {
                criterion.name: criterion.judge for criterion in criteria
            }
        return known.get(metric, "")

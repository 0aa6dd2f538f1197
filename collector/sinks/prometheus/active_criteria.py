"""The active criteria and references, by the label value of their scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.references import Match
from pathgauge.scorers.types import Reference


class ActiveCriteria:
    """The criteria between two reloads."""

    def __init__(self, evaluator: Evaluator, references: Iterable[Reference]) -> None:
        self.evaluator = evaluator
        self.references = {
            label_value(reference.scenario_id): reference for reference in references
        }
        self._judges: dict[str, dict[str, str]] = {}
        self._aggregated: dict[str, Mapping[str, Criterion]] = {}

    def __iter__(self) -> Iterator[Criterion]:
        """All criteria, those that override others included."""
        return chain(self.evaluator.criteria, *self.evaluator.overrides.values())

    def of(self, scenario: str) -> tuple[Criterion, ...]:
        """The criteria of a scenario."""
        reference = self.references.get(scenario)
        match = Match(reference, unmatched="unknown_scenario")
        scenario_id = None if reference is None else reference.scenario_id
        return self.evaluator.criteria_of(match, scenario_id)

    def thresholds(self, scenario: str) -> dict[str, Criterion]:
        """The criteria of a scenario with a threshold for single invocations, by name."""
        return {
            one.name: one
            for one in self.of(scenario)
            if one.threshold is not None and one.aggregation is None
        }

    def aggregated(self, scenario: str) -> Mapping[str, Criterion]:
        """The criteria of a scenario that judge many scores together, by name."""
        found = self._aggregated.get(scenario)
        if found is None:
            criteria = self.of(scenario)
            found = self._aggregated[scenario] = {
                one.name: one for one in criteria if one.aggregation is not None
            }
        return found

    def judge(self, scenario: str, metric: str) -> str:
        """The judge of a metric in a scenario; `""` without one."""
        judges = self._judges.get(scenario)
        if judges is None:
            criteria = (*self.evaluator.criteria, *self.of(scenario))
            judges = self._judges[scenario] = {one.name: one.judge for one in criteria}
        return judges.get(metric, "")

    def with_active_judges(self, evaluation: Evaluation, scenario: str) -> Evaluation:
        """The evaluation without the results of judges that a reload replaced while they judged."""
        results = tuple(
            result
            for result in evaluation.results
            if result.criterion.judge == self.judge(scenario, result.criterion.name)
        )
        return replace(evaluation, results=results)

    def invalidates(self, before: ActiveCriteria, series: Series, metric: str | None) -> bool:
        """Whether scores of the criteria `before` do not count any more: the reference changed, the
        judge changed, or the criterion was removed. `None` is all metrics of the series.
        """
        scenario = series.scenario
        old, new = before.references.get(scenario), self.references.get(scenario)
        if old is not None and (new is None or new.version != old.version):
            return True
        if metric is None:
            return False
        if before.judge(scenario, metric) != self.judge(scenario, metric):
            return True
        return all(criterion.name != metric for criterion in self.of(scenario))

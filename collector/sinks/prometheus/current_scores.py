"""The recent scores behind the gauges, for pages that show them without Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.windows import Window


@dataclass(frozen=True, slots=True)
class CurrentScore:
    """The recent scores of one criterion, of all versions of the agent or of one."""

    window: Window
    criterion: Criterion | None
    """`None` if the criterion is not active any more."""
    min_samples: int
    """Fewer scores do not breach a threshold."""

    @property
    def breached(self) -> bool:
        """Whether the mean misses the threshold, as `pathgauge_threshold_breached` says."""
        criterion = self.criterion
        return (
            criterion is not None
            and self.window.samples >= self.min_samples
            and criterion.verdict(self.window.mean) == "failed"
        )


def current_scores(
    windows: Iterable[Window], criteria_of: Callable[[str], Iterable[Criterion]], min_samples: int
) -> list[CurrentScore]:
    """The windows with their criteria. `criteria_of` returns the criteria of a scenario."""
    by_scenario: dict[str, Mapping[str, Criterion]] = {}
    found = []
    for window in windows:
        if window.scenario not in by_scenario:
            by_scenario[window.scenario] = {one.name: one for one in criteria_of(window.scenario)}
        criterion = by_scenario[window.scenario].get(window.metric)
        found.append(CurrentScore(window, criterion, min_samples))
    return found

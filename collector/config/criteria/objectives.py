"""Checks the `objective` of a criterion: its SLO, the share of invocations that should pass.

Alerts compare the share of failed verdicts with the share that the SLO allows. The ratio of the two
is the burn rate. It is highest when all verdicts are failures: 1 / (1 - objective). A rule that
waits for a higher burn rate can never fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pathgauge.collector.config.criteria.syntax import Location, is_number
from pathgauge.collector.core.documents import Problem, show_value
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.types import Json

BURN_RATE_FACTORS = (6.0, 3.0, 1.0)
"""The burn rates that the alerting rules wait for, the most urgent first."""


def problems(name: str, options: Mapping[str, Json], location: Location) -> Iterator[Problem]:
    """Errors in the objective of the criterion `name`. It is an error when no alert can fire."""
    objective = options.get("objective")
    if objective is None:
        return
    found = show_value(objective)
    text = ""
    if not is_number(objective) or not 0 < objective < 1:
        text = f"found {found}, expected a share of passes between 0 and 1, such as 0.95"
    elif max_burn_rate(objective) <= min(BURN_RATE_FACTORS):
        text = f"found {found}, for which no burn-rate alert can fire, expected a higher objective"
    elif options.get("threshold") is None:
        text = (
            "found an objective without a threshold, expected both: only a threshold makes verdicts"
        )
    if text:
        yield location.problem((name, "objective"), text)


def warnings(criterion: Criterion) -> Iterator[str]:
    """Alerting rules that cannot fire because the objective of the criterion is too low."""
    if criterion.objective is None:
        return
    highest = max_burn_rate(criterion.objective)
    silent = [factor for factor in BURN_RATE_FACTORS if factor >= highest]
    if silent:
        needed = 1 - 1 / max(silent)
        factors = " and ".join(f"{factor:g}" for factor in silent)
        yield (
            f"with the objective {criterion.objective:g} the burn rate is at most {highest:.3g}, so"
            f" the alerts at {factors} can never fire; they need an objective above {needed:.4f}"
        )


def max_burn_rate(objective: float) -> float:
    """The burn rate when all verdicts are failures."""
    return 1 / (1 - objective)

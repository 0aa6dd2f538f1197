"""The wanted share of passes of a criterion: what was written comes in, problems and doubts about
it go out.

Alerts compare the share of failed verdicts with the share that the objective allows. The ratio of
the two, the burn rate, is at most 1 / (1 - objective): all verdicts failed. A rule that waits for a
larger one is silent whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pathgauge.collector.config.criteria.syntax import Place, is_number
from pathgauge.collector.core.documents import Problem, show_value
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.types import Json

BURN_RATE_FACTORS = (6.0, 3.0, 1.0)
"""The burn rates that the alerting rules wait for, those that page first."""


def problems(name: str, given: Mapping[str, Json], place: Place) -> Iterator[Problem]:
    """Why no alert could ever come of the objective of the criterion `name`, whose parts are
    `given`.
    """
    objective = given.get("objective")
    if objective is None:
        return
    keys = name, "objective"
    if not is_number(objective) or not 0 < objective < 1:
        yield place.problem(
            keys,
            f"found {show_value(objective)}, expected a share of passes between 0 and 1, such as"
            " 0.95",
        )
    elif highest_burn_rate(objective) <= min(BURN_RATE_FACTORS):
        yield place.problem(
            keys,
            f"found {show_value(objective)}, for which no burn-rate alert can ever fire, expected a"
            " larger one",
        )
    elif given.get("threshold") is None:
        yield place.problem(
            keys,
            "found an objective without a threshold, expected both: without one nothing passes or"
            " fails",
        )


def doubts(criterion: Criterion) -> Iterator[str]:
    """What the objective of a criterion is probably not meant to do."""
    if criterion.objective is None:
        return
    most = highest_burn_rate(criterion.objective)
    silent = [factor for factor in BURN_RATE_FACTORS if factor >= most]
    if silent:
        needed = 1 - 1 / max(silent)
        factors = " and ".join(f"{factor:g}" for factor in silent)
        found = f"with the objective {criterion.objective:g} the burn rate is {most:.3g} at most"
        yield (
            f"{found}, so that its alerts at {factors} can never fire; they need an objective above"
            f" {needed:.4f}"
        )


def highest_burn_rate(objective: float) -> float:
    """When all verdicts are failures."""
    return 1 / (1 - objective)

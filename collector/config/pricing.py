"""The section `prices`: what the models of agents cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pathgauge.collector.config.judging import JudgePrice, Number
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.composite import CostOfPassed
from pathgauge.scorers.cost.cost import Cost
from pathgauge.scorers.types import Json


class Price(JudgePrice):
    """US dollars per million tokens. Cached tokens cost as much as others if they have no price."""

    cached: Number | None = None
    cache_write: Number | None = None


def as_option(prices: Mapping[str, Price]) -> Mapping[str, Json]:
    """The section as the option `prices` of a scorer."""
    return {name: price.model_dump() for name, price in prices.items()}


def missing_prices(criteria: Iterable[Criterion]) -> Iterator[str]:
    """A warning about criteria that cannot have a value without prices."""
    names = dict.fromkeys(criterion.name for criterion in criteria if _lacks_prices(criterion))
    if names:
        yield f"there are no prices, which these criteria need: {', '.join(names)}"


def _lacks_prices(criterion: Criterion) -> bool:
    scorer = criterion.scorer
    if isinstance(scorer, OfAgent):
        scorer = scorer.scorer
    match scorer:
        case Cost(prices=prices) | CostOfPassed(measure="cost", prices=prices):
            return not prices
    return False

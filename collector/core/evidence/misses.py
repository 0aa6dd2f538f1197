"""Which tool calls made a score worse than the best one: the input of "what changed"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from pathgauge.collector.core.evaluations.evaluator import Result
from pathgauge.collector.core.evidence.deviations import Deviation, deviation
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.collector.core.evidence.signatures import short_name

MAX_MISSES = 10
"""Of one invocation."""


def misses_of(results: Iterable[Result]) -> tuple[Miss, ...]:
    """The different misses that the score with the most findings lists."""
    found = [deviates for result in results if (deviates := _deviation(result)) is not None]
    if not found:
        return ()
    most = max(found, key=lambda deviates: deviates.extent)
    return tuple(islice(dict.fromkeys(_misses(most)), MAX_MISSES))


def _deviation(result: Result) -> Deviation | None:
    value, scorer = result.score.value, result.criterion.scorer
    if value is None:
        return None
    best = scorer.high if scorer.higher_is_better else scorer.low
    return None if value == best else deviation(result.score.details)


def _misses(deviates: Deviation) -> Iterator[Miss]:
    for _, tool in deviates.missing:
        yield Miss("missing", short_name(tool))
    for _, tool, arguments in deviates.differing:
        for argument in arguments or ("",):
            yield Miss("argument", short_name(tool), short_name(argument))
    for _, tool in (*deviates.unexpected, *deviates.moved):
        yield Miss("unexpected", short_name(tool))

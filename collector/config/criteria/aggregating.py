"""Reads `over`, `aggregate`, `each` and `k`: criteria that judge many scores together.

`over: invocation`, the default, judges each invocation alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pathgauge.collector.config.criteria.syntax import Location, is_number
from pathgauge.collector.core.documents import Problem, did_you_mean, show_value
from pathgauge.collector.core.evaluations.aggregation import MEASURES, OVER, Aggregation
from pathgauge.scorers.types import Json, Scorer

KEYS = ("over", "aggregate", "each", "k")
INVOCATION = "invocation"
_OF_RUNS = ("pass@k", "pass^k")


def aggregation_of(options: Mapping[str, Json]) -> Aggregation | None:
    """The aggregation of a criterion without `problems`; `None` over single invocations."""
    over: Json = options.get("over")
    if over is None or over == INVOCATION:
        return None
    return Aggregation(
        over, options.get("aggregate") or "mean", options.get("each"), options.get("k") or 1
    )


def problems(
    name: str, options: Mapping[str, Json], scorer: Scorer | type[Scorer], location: Location
) -> Iterator[Problem]:
    """Mistakes in the aggregation of the criterion `name`."""
    over, measure = options.get("over") or INVOCATION, options.get("aggregate") or "mean"
    if over not in (INVOCATION, *OVER):
        yield location.problem((name, "over"), _one_of(over, (INVOCATION, *OVER)))
    elif measure not in MEASURES:
        yield location.problem((name, "aggregate"), _one_of(measure, MEASURES))
    elif over == INVOCATION:
        for key in KEYS[1:]:
            if options.get(key) is not None:
                text = f"found {key!r} without 'over', expected over: {', '.join(OVER)}"
                yield location.problem((name, key), text, of_key=True)
    else:
        yield from _value_problems(name, measure, options, scorer, location)
        if options.get("objective") is not None:
            text = f"found an objective and over: {over}, expected only one of the two"
            yield location.problem((name, "objective"), text, of_key=True)


def _value_problems(
    name: str,
    measure: str,
    options: Mapping[str, Json],
    scorer: Scorer | type[Scorer],
    location: Location,
) -> Iterator[Problem]:
    each = options.get("each")
    if measure == "mean" and each is not None:
        text = "found 'each' with a mean, expected aggregate: share, pass@k or pass^k"
        yield location.problem((name, "each"), text, of_key=True)
    elif each is None:
        # The best number of seconds or tokens is 0, which no invocation reaches.
        if measure != "mean" and not math.isfinite(scorer.high - scorer.low):
            text = (
                f"found no 'each', expected the score with which one invocation passes ({measure})"
            )
            yield location.problem((name, "aggregate"), text)
    elif not is_number(each) or not scorer.low <= each <= scorer.high:
        text = f"found {show_value(each)}, expected a number from {scorer.low:g} to {scorer.high:g}"
        yield location.problem((name, "each"), text)
    yield from _k_problems(name, measure, options.get("k"), location)


def _k_problems(name: str, measure: str, k: Json, location: Location) -> Iterator[Problem]:
    if (measure in _OF_RUNS) != (k is not None):
        expected = "a number of invocations" if measure in _OF_RUNS else "none"
        found, key = ("no 'k'", "aggregate") if k is None else ("'k'", "k")
        text = f"found {found} with aggregate: {measure}, expected {expected}"
        yield location.problem((name, key), text)
    elif k is not None and (isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= 100):
        text = f"found {show_value(k)}, expected a number of invocations from 1 to 100"
        yield location.problem((name, "k"), text)


def threshold_range(
    options: Mapping[str, Json], scorer: Scorer | type[Scorer]
) -> tuple[float, float]:
    """The range of the threshold: that of the scorer for a mean, else 0 to 1."""
    if (options.get("aggregate") or "mean") == "mean":
        return scorer.low, scorer.high
    return 0.0, 1.0


def _one_of(value: Json, names: tuple[str, ...]) -> str:
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    return f"found {show_value(value)}, expected {', '.join(names)}{hint}"

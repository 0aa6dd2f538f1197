"""Scores what an invocation cost in US dollars, sub-agents included. Lower is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import models_incomplete
from pathgauge.scorers.authoring.options import FrozenMapping
from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.cost.prices import TokenPrice, price_of
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, ModelCall, ReferenceTurn, Score


@dataclass(frozen=True)
class Cost(Amount):
    """US dollars that the tokens of all models cost."""

    name: ClassVar[str] = "cost"

    prices: Mapping[str, TokenPrice] = FrozenMapping()
    """US dollars per million tokens, by model: `input`, `output`, and for caches `cached` and
    `cache_write`. Without this option, the section `prices` of the configuration.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "prices", FrozenMapping(self.prices))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if incomplete := models_incomplete(actual):
            return incomplete
        calls = _paid_calls(actual)
        if isinstance(calls, Score):
            return calls
        models = dict.fromkeys(call.model or "" for call in calls)
        prices = {model: price_of(model, self.prices) for model in models}
        priced = [(call, prices[call.model or ""]) for call in calls]
        if unknown := [call.model or "an unnamed model" for call, price in priced if price is None]:
            return Score.not_evaluated("no_price", f"no price of {listed(unknown)}")
        return _score([(call, price.cost(call)) for call, price in priced if price is not None])


def _score(costs: Sequence[tuple[ModelCall, float]]) -> Score:
    total = math.fsum(cost for _, cost in costs)
    by_model: dict[str, Json] = {}
    for call, cost in costs:
        by_model[str(call.model)] = by_model.get(str(call.model), 0.0) + cost
    models = listed([str(call.model) for call, _ in costs])
    return Score(total, None, f"{total:.4g} USD for {models}", {"usd_by_model": by_model})


def _paid_calls(actual: Invocation) -> Sequence[ModelCall] | Score:
    """The calls that cost something, or why they are not known. A call that failed and has no count
    cost nothing. If only the totals of the agent are known, they count as a call of its only model.
    """
    calls = [call for call in actual.model_calls if call.error is None or _has_count(call)]
    if calls and all(map(_is_counted, calls)):
        return calls
    if len({call.model for call in calls} | {actual.model}) == 1:
        total = ModelCall(
            actual.span_id,
            model=actual.model,
            input_tokens=actual.input_tokens,
            output_tokens=actual.output_tokens,
        )
        if _is_counted(total):
            return [total]
    if not actual.model_calls:
        return Score.not_evaluated("incomplete", "no model calls were recorded")
    return Score.not_evaluated("tokens_not_recorded")


def _has_count(call: ModelCall) -> bool:
    return call.input_tokens is not None or call.output_tokens is not None


def _is_counted(call: ModelCall) -> bool:
    if call.error is not None:
        return _has_count(call)
    return call.input_tokens is not None and call.output_tokens is not None

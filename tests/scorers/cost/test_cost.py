"""Cost in US dollars: prices of models, cached tokens, and when the cost is not known."""

from typing import Any

import pytest

from pathgauge import (
    AgentRun,
    Cost,
    CostOfPassed,
    Failure,
    Member,
    ModelCall,
    Score,
    TokenPrice,
    check_scorer,
    invocation,
)
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.cost.prices import price_of

PRICES = {
    "big": TokenPrice(2.0, 10.0, cached=0.5, cache_write=3.0),
    "small*": TokenPrice(0.5, 1.0),
}


def call(model: str | None, given: int | None, made: int | None, **others: Any) -> ModelCall:
    return ModelCall("s", model=model, input_tokens=given, output_tokens=made, **others)


def score(*calls: ModelCall, **others: Any) -> Score:
    return Cost(PRICES).score(invocation(model_calls=calls, **others), None)


@pytest.mark.parametrize(
    ("calls", "usd"),
    [
        ([call("big", 1_000_000, 0)], 2.0),
        ([call("big", 0, 1_000_000)], 10.0),
        ([call("big", 1_000, 500), call("small-1", 2_000, 100)], 0.002 + 0.005 + 0.001 + 0.0001),
        ([call("big", 1_000, 0, cached_tokens=400)], 0.0012 + 0.0002),
        ([call("big", 1_000, 0, cached_tokens=400, cache_write_tokens=600)], 0.0002 + 0.0018),
        ([call("big", 100, 0, cached_tokens=400)], 0.0002 + 0.0002),
        ([call("small", 1_000, 0, cached_tokens=400, cache_write_tokens=100)], 0.0005),
        ([call("big", 1_000, 0), call("big", None, None, error="timeout")], 0.002),
        ([call("big", 1_000, None, error="cut off")], 0.002),
    ],
)
def test_a_call_costs_what_its_tokens_cost(calls: list[ModelCall], usd: float) -> None:
    assert score(*calls).value == pytest.approx(usd)


def test_the_explanation_names_the_models() -> None:
    assert score(call("big", 1_000, 100), call("small", 0, 1), call("big", 500, 0)) == Score(
        0.004001,
        None,
        "0.004001 USD for big x2, small",
        {"usd_by_model": {"big": 0.004, "small": 1e-06}},
    )


@pytest.mark.parametrize(
    ("calls", "others", "reason"),
    [
        ([call("other", 1, 1)], {}, "no_price"),
        ([call(None, 1, 1)], {}, "no_price"),
        ([call("big", None, None)], {}, "tokens_not_recorded"),
        ([call("big", 1, None)], {}, "tokens_not_recorded"),
        ([call("big", None, None, error="timeout")], {}, "tokens_not_recorded"),
        ([], {}, "incomplete"),
        ([call("big", 1, 1)], {"flags": frozenset({"dropped_spans"})}, "incomplete"),
    ],
)
def test_there_is_no_value_if_tokens_or_prices_are_not_known(
    calls: list[ModelCall], others: dict[str, Any], reason: str
) -> None:
    assert score(*calls, **others).reason == reason


def test_the_reason_names_models_without_a_price() -> None:
    assert score(call("other", 1, 1), call(None, 1, 1)).explanation == (
        "no price of other, an unnamed model"
    )


@pytest.mark.parametrize(
    ("calls", "model", "value"),
    [
        ([], "big", 0.003),
        ([call("big", None, None)], "big", 0.003),
        ([call("big", None, None), call("small", None, None)], "big", None),
        ([], "other", None),
    ],
)
def test_totals_of_the_agent_count_if_there_is_one_model(
    calls: list[ModelCall], model: str, value: float | None
) -> None:
    found = score(*calls, model=model, input_tokens=1_000, output_tokens=100)
    assert found.value == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("model", "pattern"),
    [
        ("gpt-4o", "gpt-4o"),
        ("GPT-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-latest", "gpt-4o"),
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o-audio", "gpt-*"),
        ("gpt-4o-0806-preview", "gpt-*"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("anthropic.claude-sonnet-4-20250514-v1:0", "*claude-sonnet-4*"),
        ("gemini-2.5-pro-002", "gemini-2.5-pro"),
        ("gemini-2.5-pro@001", "gemini-2.5-pro"),
        ("gemini-2.5-flash", None),
        ("", None),
    ],
)
def test_the_price_of_the_most_specific_entry_counts(model: str, pattern: str | None) -> None:
    names = (
        *("gpt-*", "gpt-4o", "gpt-4o-mini", "claude-sonnet-4", "*claude-sonnet-4*"),
        *("*claude*", "gemini-2.5-pro"),
    )
    prices = {name: TokenPrice(at, 0) for at, name in enumerate(names)}
    found = price_of(model, prices)
    assert found == (None if pattern is None else prices[pattern])
    assert price_of(model, dict(reversed(prices.items()))) == found


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["input", "output", "cached", "cache_write"])
def test_a_price_that_is_none_is_refused(name: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=f"{name}: found {wrong}, expected a number from 0"):
        TokenPrice(**({"input": 1.0, "output": 1.0} | {name: wrong}))


def test_a_sub_agent_costs_what_its_own_calls_cost() -> None:
    actual = invocation(
        sub_agents=(AgentRun("2", "billing"),),
        model_calls=(call("big", 1_000, 0, run="1"), call("small", 1_000, 0, run="2")),
        agent="main",
    )
    assert OfAgent(Cost(PRICES), "billing").score(actual, None).value == pytest.approx(0.0005)
    assert OfAgent(Cost(PRICES), "main").score(actual, None).value == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("error", "value", "reason"), [(False, 0.002, None), (True, None, "not_applicable")]
)
def test_the_cost_of_an_invocation_that_passes(
    error: bool, value: float | None, reason: str | None
) -> None:
    scorer = CostOfPassed((Member("failure", Failure(), 0),), measure="cost", prices=PRICES)
    actual = invocation(model_calls=(call("big", 1_000, 0),), error=error)
    found = scorer.score(actual, None)
    assert (found.value, found.reason) == (value, reason)


def test_prices_that_another_measure_does_not_use_change_nothing() -> None:
    assert CostOfPassed(prices=PRICES) == CostOfPassed()
    assert CostOfPassed(measure="cost", prices=PRICES) != CostOfPassed(measure="cost")


def test_it_keeps_the_contract() -> None:
    actual = invocation(model_calls=(call("big", 10, 1), call("small", 5, 2)))
    check_scorer(Cost(PRICES), [(actual, None)])

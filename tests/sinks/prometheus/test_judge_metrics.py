"""What judges ask of models, seen as Prometheus sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.sinks.prometheus.judge_metrics import JudgeSeries

MODEL = "openai:gpt-4.1-mini"


def shown(series: JudgeSeries, *but: str) -> dict[str, float]:
    """All samples but buckets and those called `but`, with the values of their labels in the order
    of their names.
    """
    registry = CollectorRegistry()
    registry.register(series)
    samples = [
        sample
        for family in parse_text(generate_latest(registry).decode())
        for sample in family.samples
    ]
    return {
        sample.name.removeprefix("pathgauge_judge_")
        + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for sample in samples
        if "le" not in sample.labels and not sample.name.endswith(but)
    }


BEGUN = {
    f"requests_total 200 {MODEL}": 0,
    f"request_duration_seconds_count {MODEL}": 0,
    f"request_duration_seconds_sum {MODEL}": 0,
    f"tokens_total {MODEL} input": 0,
    f"tokens_total {MODEL} output": 0,
    f"cost_usd_total {MODEL}": 0,
    f"cache_total {MODEL} hit": 0,
    f"cache_total {MODEL} joined": 0,
    f"cache_total {MODEL} miss": 0,
}
"""What is shown of a configured model before it is asked."""


def test_the_series_of_configured_models_begin_at_0() -> None:
    assert shown(JudgeSeries([MODEL])) == BEGUN
    assert shown(JudgeSeries()) == {}


@pytest.mark.parametrize(
    ("tell", "changed"),
    [
        (lambda on: on.request(MODEL, "200", 0.5), {"requests_total 200 {}": 1, "request_duration_seconds_count {}": 1,
            "request_duration_seconds_sum {}": 0.5}),
        (lambda on: on.request(MODEL, "timeout", 30.0), {"requests_total timeout {}": 1, "request_duration_seconds_count {}": 1,
            "request_duration_seconds_sum {}": 30.0}),
        (lambda on: on.request(MODEL, "what the server said", -1.0), {"requests_total __other__ {}": 1,
            "request_duration_seconds_count {}": 1}),
        (lambda on: on.tokens(MODEL, "input", 120), {"tokens_total {} input": 120}),
        (lambda on: on.tokens(MODEL, "output", 7), {"tokens_total {} output": 7}),
        (lambda on: on.tokens(MODEL, "input", -1), {}),
        (lambda on: on.tokens(MODEL, "input", 10**400), {}),
        (lambda on: on.cost(MODEL, 0.25), {"cost_usd_total {}": 0.25}),
        (lambda on: on.cost(MODEL, float("nan")), {}),
        (lambda on: on.cost(MODEL, float("inf")), {}),
        (lambda on: on.cached(MODEL, "hit"), {"cache_total {} hit": 1}),
        (lambda on: on.cached(MODEL, "joined"), {"cache_total {} joined": 1}),
        (lambda on: on.cached(MODEL, "miss"), {"cache_total {} miss": 1}),
    ],
)  # fmt: skip
def test_what_is_told_is_counted_and_what_a_server_makes_up_is_not(
    tell: Callable[[JudgeSeries], None], changed: dict[str, float]
) -> None:
    series = JudgeSeries([MODEL])
    tell(series)
    assert shown(series) == BEGUN | {name.format(MODEL): value for name, value in changed.items()}


def test_names_of_models_are_cut_and_can_be_written() -> None:
    series = JudgeSeries()
    series.cost("\ud800" + "m" * 100, 1.0)
    assert shown(series) == {"cost_usd_total ?" + "m" * 63: 1.0}


def test_budgets_and_circuits_are_asked_at_every_scrape() -> None:
    left, stopped = (
        [("hour", "calls", 0.25), ("day", "usd", -0.5), ("day", "tokens", 1.5)],
        [(MODEL, True), ("local:small", False)],
    )
    series = JudgeSeries(budgets=lambda: left, circuits=lambda: stopped)
    assert shown(series) == {
        "budget_remaining_ratio calls hour": 0.25,
        "budget_remaining_ratio usd day": 0.0,
        "budget_remaining_ratio tokens day": 1.0,
        f"circuit_open {MODEL}": 1,
        "circuit_open local:small": 0,
    }
    left.clear()
    stopped.clear()
    assert shown(series) == {}


def test_scrapes_beside_requests_lose_none() -> None:
    series = JudgeSeries([MODEL])
    done = threading.Event()

    def ask() -> None:
        for number in range(2000):
            series.request(MODEL, str(200 + number % 50), 0.25)
            series.cached(MODEL, "miss")
        done.set()

    asker = threading.Thread(target=ask)
    asker.start()
    while not done.is_set():
        shown(series)
    asker.join()
    counted = shown(series)
    assert (
        sum(value for name, value in counted.items() if name.startswith("requests_total")) == 2000
    )
    assert counted[f"request_duration_seconds_sum {MODEL}"] == 500.0
    assert counted[f"cache_total {MODEL} miss"] == 2000

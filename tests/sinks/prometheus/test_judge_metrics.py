"""Metrics of requests to models, tested through the exposition."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.sinks.prometheus.judge_metrics import JudgeSeries

MODEL = "openai:gpt-4.1-mini"


def shown(series: JudgeSeries, *but: str) -> dict[str, float]:
    """All samples except buckets and names that end with `but`; label values are in the order of
    their names.
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


AT_START = {
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
"""The samples of a configured model before its first request."""


def test_the_series_of_configured_models_begin_at_0() -> None:
    assert shown(JudgeSeries([MODEL])) == AT_START
    assert shown(JudgeSeries()) == {}


@pytest.mark.parametrize(
    ("record", "changed"),
    [
        (lambda series: series.request(MODEL, "200", 0.5),
            {"requests_total 200 {}": 1, "request_duration_seconds_count {}": 1,
             "request_duration_seconds_sum {}": 0.5}),
        (lambda series: series.request(MODEL, "timeout", 30.0),
            {"requests_total timeout {}": 1, "request_duration_seconds_count {}": 1,
             "request_duration_seconds_sum {}": 30.0}),
        (lambda series: series.request(MODEL, "text of the server", -1.0),
            {"requests_total __other__ {}": 1, "request_duration_seconds_count {}": 1}),
        (lambda series: series.tokens(MODEL, "input", 120), {"tokens_total {} input": 120}),
        (lambda series: series.tokens(MODEL, "output", 7), {"tokens_total {} output": 7}),
        (lambda series: series.tokens(MODEL, "input", -1), {}),
        (lambda series: series.tokens(MODEL, "input", 10**400), {}),
        (lambda series: series.cost(MODEL, 0.25), {"cost_usd_total {}": 0.25}),
        (lambda series: series.cost(MODEL, float("nan")), {}),
        (lambda series: series.cost(MODEL, float("inf")), {}),
        (lambda series: series.cached(MODEL, "hit"), {"cache_total {} hit": 1}),
        (lambda series: series.cached(MODEL, "joined"), {"cache_total {} joined": 1}),
        (lambda series: series.cached(MODEL, "miss"), {"cache_total {} miss": 1}),
    ],
)  # fmt: skip
def test_requests_are_counted_and_absurd_numbers_of_a_server_are_not(
    record: Callable[[JudgeSeries], None], changed: dict[str, float]
) -> None:
    series = JudgeSeries([MODEL])
    record(series)
    assert shown(series) == AT_START | {
        name.format(MODEL): value for name, value in changed.items()
    }


def test_names_of_models_are_cut_and_encodable() -> None:
    series = JudgeSeries()
    series.cost("\ud800" + "m" * 100, 1.0)
    assert shown(series) == {"cost_usd_total ?" + "m" * 54 + "~b56acf50": 1.0}


def test_budgets_and_circuits_are_read_at_every_scrape() -> None:
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


def test_concurrent_scrapes_lose_no_request() -> None:
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

"""Metrics of the requests that judges send to models.

No label value comes from what is judged: model names come from the configuration, the others from
closed sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.sinks.prometheus.invocation_metrics import DURATION_BUCKETS
from pathgauge.collector.sinks.prometheus.labels import OTHER
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.store.resharding.spending import ACTIVE_SPENT, SHADOW_SPENT

TOKEN_KINDS = ("input", "output")
CACHE_RESULTS = ("hit", "joined", "miss")
MAX_REPORTED = 1e12
"""Of tokens, or dollars, for one request. The server reports them; one absurd number would make the
counter useless for good.
"""

_CODE = re.compile(r"[1-9][0-9]{2}|timeout|connection|address|too_large|cancelled")

Budgets = Callable[[], Iterable[tuple[str, str, float]]]
"""Window (`hour` or `day`), kind (`calls`, `tokens` or `usd`) and remaining share (0 to 1) of each
budget.
"""
Circuits = Callable[[], Iterable[tuple[str, bool]]]
"""Each model that was asked, and whether its circuit breaker is open."""


class Whose(NamedTuple):
    """Whose judges the series are about."""

    prefix: str
    judges: str
    spent: str
    """The name under which the store keeps what they have spent."""


ACTIVE = Whose("pathgauge_judge_", "the judges", ACTIVE_SPENT)
SHADOW = Whose("pathgauge_shadow_judge_", "the judges in shadow", SHADOW_SPENT)


class JudgeSeries(Collector):
    """All series start at 0 with the process. Requests and scrapes may run in different threads."""

    def __init__(
        self,
        models: Iterable[str] = (),
        budgets: Budgets = tuple,
        circuits: Circuits = tuple,
        whose: Whose = ACTIVE,
    ) -> None:
        """`models` are the configured ones. `budgets` and `circuits` are called at every scrape, in
        the thread of the scrape.
        """
        self._budgets = budgets
        self._circuits = circuits
        self._whose = whose
        name, of_judges = whose.prefix, f"of {whose.judges}"
        self._requests = Counter(
            f"{name}requests",
            f"Requests {of_judges} to models, by HTTP status or error.",
            ("model", "code"),
            registry=None,
        )
        self._seconds = Histogram(
            f"{name}request_duration_seconds",
            f"Duration of requests {of_judges} to models.",
            ("model",),
            buckets=DURATION_BUCKETS,
            registry=None,
        )
        self._tokens = Counter(
            f"{name}tokens",
            f"Tokens that models reported for requests {of_judges}, by type (input or output).",
            ("model", "type"),
            registry=None,
        )
        self._cost = Counter(
            f"{name}cost_usd",
            f"Cost of the tokens {of_judges} in US dollars, at the configured prices.",
            ("model",),
            registry=None,
        )
        self._cache = Counter(
            f"{name}cache",
            f"Questions {of_judges} to models, by cache result (hit, joined or miss).",
            ("model", "result"),
            registry=None,
        )
        self.expect(models)

    def expect(self, models: Iterable[str]) -> None:
        """Start the series of these models at 0, so that `rate` and `increase` see the first
        request.
        """
        for model in map(_label, models):
            self._requests.labels(model, "200")
            self._seconds.labels(model)
            self._cost.labels(model)
            for kind in TOKEN_KINDS:
                self._tokens.labels(model, kind)
            for how in CACHE_RESULTS:
                self._cache.labels(model, how)

    def request(self, model: str, code: str, seconds: float) -> None:
        """Count a request that took `seconds`; `code` is the HTTP status or the kind of error."""
        known_code = code if _CODE.fullmatch(code) else OTHER
        self._requests.labels(_label(model), known_code).inc()
        self._seconds.labels(_label(model)).observe(max(0.0, seconds))

    def tokens(self, model: str, kind: str, count: int) -> None:
        """Count the tokens of one request, of the kind `input` or `output`."""
        if 0 <= count <= MAX_REPORTED:
            self._tokens.labels(_label(model), kind).inc(count)

    def cost(self, model: str, usd: float) -> None:
        """Count the cost of one request in US dollars."""
        if 0 <= usd <= MAX_REPORTED:
            self._cost.labels(_label(model)).inc(usd)

    def cached(self, model: str, how: str) -> None:
        """Count a question: its answer was cached (`hit`), the same question was being asked
        already (`joined`), or it needs a request (`miss`).
        """
        self._cache.labels(_label(model), how).inc()

    def collect(self) -> Iterator[Metric]:
        """All series. prometheus_client calls this at a scrape."""
        yield from Live(
            (self._requests, self._seconds, self._tokens, self._cost, self._cache)
        ).collect()
        left = GaugeMetricFamily(
            f"{self._whose.prefix}budget_remaining_ratio",
            f"Remaining share of a budget of {self._whose.judges}, from 0 to 1.",
            labels=("window", "kind"),
        )
        for window, kind, share in self._budgets():
            left.add_metric((window, kind), min(1.0, max(0.0, share)))
        yield left
        is_open = GaugeMetricFamily(
            f"{self._whose.prefix}circuit_open",
            "1 while the circuit breaker of a model is open: it failed too often and is not asked"
            " for a while; else 0.",
            labels=("model",),
        )
        for model, stopped in self._circuits():
            is_open.add_metric((_label(model),), float(stopped))
        yield is_open


def _label(model: str) -> str:
    return label_value(model, MAX_NAME_BYTES)

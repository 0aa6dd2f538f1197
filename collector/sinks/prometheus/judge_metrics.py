"""What judges ask of models, as series: each request, token, dollar and answer from the cache comes
in, counters and histograms go out.

Nothing that is judged comes near it: models are named by the configuration, everything else is a
word of a closed set or a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.sinks.prometheus.evaluation_metrics import DURATION_BUCKETS
from pathgauge.collector.sinks.prometheus.labels import NAME_BYTES, OTHER, label_value
from pathgauge.collector.sinks.prometheus.live_metrics import Live

TOKEN_KINDS = ("input", "output")
CACHE_RESULTS = ("hit", "joined", "miss")
MOST = 1e12
"""Of tokens and dollars for one request. The server reports them, and a counter that took in
anything would never be of use again.
"""

_CODE = re.compile(r"[1-9][0-9]{2}|timeout|connection|address|too_large|cancelled")

Budgets = Callable[[], Iterable[tuple[str, str, float]]]
"""Window (`hour`, `day`), kind (`calls`, `tokens`, `usd`) and the share of each budget that is
left, from 0 to 1.
"""
Circuits = Callable[[], Iterable[tuple[str, bool]]]
"""Each model that was asked, and whether it is not asked for the present as it keeps failing."""


class JudgeSeries(Collector):
    """Told of requests in the thread that makes them, while scrapes run in others. All of it begins
    at 0 with the process.
    """

    def __init__(
        self, models: Iterable[str] = (), budgets: Budgets = tuple, circuits: Circuits = tuple
    ) -> None:
        """`models` are those that are configured; `budgets` and `circuits` are called at every
        scrape, in whatever thread that runs.
        """
        self._budgets = budgets
        self._circuits = circuits
        name = "pathgauge_judge_"
        self._requests = Counter(
            f"{name}requests", "Requests to models, by answer.", ("model", "code"), registry=None
        )
        self._seconds = Histogram(
            f"{name}request_duration_seconds",
            "Duration of requests to models.",
            ("model",),
            buckets=DURATION_BUCKETS,
            registry=None,
        )
        self._tokens = Counter(
            f"{name}tokens",
            "Tokens that models report for requests.",
            ("model", "type"),
            registry=None,
        )
        self._cost = Counter(
            f"{name}cost_usd",
            "What these tokens cost, at the prices of the configuration.",
            ("model",),
            registry=None,
        )
        self._cache = Counter(
            f"{name}cache",
            "Questions, by whether the answer was known.",
            ("model", "result"),
            registry=None,
        )
        self.expect(models)

    def expect(self, models: Iterable[str]) -> None:
        """Begin the series of these models at 0, so that `rate` and `increase` see the first of
        everything.
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
        """A request to `model` ended after `seconds`, with an HTTP status or a word for what came
        in its place.
        """
        self._requests.labels(_label(model), code if _CODE.fullmatch(code) else OTHER).inc()
        self._seconds.labels(_label(model)).observe(max(0.0, seconds))

    def tokens(self, model: str, kind: str, count: int) -> None:
        """The server reports so many tokens, `input` or `output`, for one request."""
        if 0 <= count <= MOST:
            self._tokens.labels(_label(model), kind).inc(count)

    def cost(self, model: str, usd: float) -> None:
        """They cost so many US dollars."""
        if 0 <= usd <= MOST:
            self._cost.labels(_label(model)).inc(usd)

    def cached(self, model: str, how: str) -> None:
        """A question came whose answer was known (`hit`), is under way (`joined`), or has to be got
        (`miss`).
        """
        self._cache.labels(_label(model), how).inc()

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client asks its collectors at a scrape."""
        yield from Live(
            (self._requests, self._seconds, self._tokens, self._cost, self._cache)
        ).collect()
        left = GaugeMetricFamily(
            "pathgauge_judge_budget_remaining_ratio",
            "Share of a budget of the judges that is left.",
            labels=("window", "kind"),
        )
        for window, kind, share in self._budgets():
            left.add_metric((window, kind), min(1.0, max(0.0, share)))
        yield left
        is_open = GaugeMetricFamily(
            "pathgauge_judge_circuit_open",
            "1 for a model that is not asked for the present, as it keeps failing, else 0.",
            labels=("model",),
        )
        for model, stopped in self._circuits():
            is_open.add_metric((_label(model),), float(stopped))
        yield is_open


def _label(model: str) -> str:
    return label_value(model, NAME_BYTES)

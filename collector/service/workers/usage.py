"""How much all scorers hold together, and the metrics that only they know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.service.labelled_metrics import labelled
from pathgauge.collector.service.total_usage import total
from pathgauge.collector.service.workers.messages import Status
from pathgauge.collector.service.workers.scorer_process import ScorerProcess
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage, unread_publications
from pathgauge.collector.store import Usage

QUEUES = ("ingest", "open_traces", "conversations", "store_in_flight", "store", "judges")
SCORER = "scorer"
GAUGE = "gauge"
"""The value of this label for the parent."""


class FleetUsage(Collector):
    """For any thread."""

    def __init__(
        self,
        scorers: Sequence[ScorerProcess],
        results: Callable[[], Usage],
        own: Callable[[], Iterable[Metric]],
    ) -> None:
        """`results` returns the usage of the store of the results, `own` what this process measures
        like its scorers.
        """
        self._scorers = scorers
        self._results = results
        self._own = own

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues of all scorers together, by label value."""
        return {
            name: Queue(partial(self._size, name), partial(self._capacity, name)) for name in QUEUES
        }

    def total(self) -> CollectorUsage:
        """The sum over all scorers; of ages the largest, of states the worst."""
        return total([status.usage for status in self._statuses()], self._results())

    def collect(self) -> Iterator[Metric]:
        """What each scorer says of itself. prometheus_client calls this at a scrape."""
        up = GaugeMetricFamily(
            "pathgauge_scorer_up",
            "1 while the scorer process runs and answers, else 0.",
            labels=(SCORER,),
        )
        restarts = CounterMetricFamily(
            "pathgauge_scorer_restarts",
            "Scorer processes that ended and were started again.",
            labels=(SCORER,),
        )
        backlog = GaugeMetricFamily(
            "pathgauge_scorer_backlog_age_seconds",
            "Upper bound for the age of the oldest request that the scorer has not processed.",
            labels=(SCORER,),
        )
        for scorer in self._scorers:
            name, status = str(scorer.number), scorer.present
            up.add_metric((name,), float(status is not None))
            restarts.add_metric((name,), scorer.restarts)
            if status is not None:
                backlog.add_metric((name,), status.usage.backlog_age_s)
        yield from (up, restarts, backlog)
        yield from unread_publications(status.unread for status in self._statuses())
        of_scorers = {
            str(one.number): status.metrics
            for one in self._scorers
            if (status := one.present) is not None
        }
        yield from labelled(SCORER, {GAUGE: self._own(), **of_scorers})

    def _statuses(self) -> list[Status]:
        """Of those that answer: what the others hold is unknown."""
        return [status for one in self._scorers if (status := one.present) is not None]

    def _size(self, queue: str) -> float:
        return sum(one.queues[queue].size for one in self._statuses() if queue in one.queues)

    def _capacity(self, queue: str) -> float:
        return sum(one.queues[queue].capacity for one in self._statuses() if queue in one.queues)

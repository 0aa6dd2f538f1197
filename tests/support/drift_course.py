"""A sink that gets evaluations in virtual time, is scraped every five minutes, and pages.

Each score is the answer of an invocation, which the real evaluator scores. While nothing is
published nothing changes, apart from streams that fall idle, so scrapes that would show the same
are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from prometheus_client.core import Metric

from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.drift.gauges import SILENT_S
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.drift_pages import Page, firing
from support.durable_harness import DurableHarness
from support.sink_harness import Answer, SinkHarness

SCRAPE_S = 300.0
HOUR_S, DAY_S, YEAR_S = 3600.0, 86_400.0, 365 * 86_400.0

PASS = Criterion("answer", Answer(), 1.0)
"""As ADK's trajectories: no mean reaches this threshold, so the baseline is learned."""

Draw = Callable[[Random], float]
OnScrape = Callable[[Sequence[Metric], set[Page]], None]


def scenarios(count: int) -> ReferenceSet:
    """Scenarios `s0`, `s1`, ..."""
    return ReferenceSet(Reference(f"s{number}", (ReferenceTurn(),)) for number in range(count))


def passing(mean: float) -> Draw:
    """Scores of 0 and 1 with this mean: no other scores from 0 to 1 vary more."""
    return lambda random: float(random.random() < mean)


@dataclass(frozen=True)
class Wandering:
    """Scores of 0 and 1 at random times, whose mean is another one in each hour."""

    per_hour: float
    """Of each scenario."""
    deviation: float = 0.0
    """Standard deviation of the hourly means."""
    mean: float = 0.95
    scenarios: int = 1
    """Each wanders on its own."""

    def scores(
        self, random: Random, began: float, end: float
    ) -> Iterator[tuple[float, int, float]]:
        """Time, scenario and score of each evaluation."""
        hour, means, at = -1.0, [self.mean] * self.scenarios, began
        while True:
            at += random.expovariate(self.per_hour * self.scenarios / HOUR_S)
            if at > end:
                return
            if self.deviation and at // HOUR_S != hour:
                hour = at // HOUR_S
                means = [min(1.0, max(0.0, random.gauss(self.mean, self.deviation))) for _ in means]
            number = random.randrange(self.scenarios) if self.scenarios > 1 else 0
            yield at, number, float(random.random() < means[number])


@dataclass(frozen=True)
class Sender:
    """Scores at random times."""

    per_hour: float
    draw: Draw
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The scenario, and fields of the invocation."""


class DriftCourse:
    """A collector with scenarios of one agent, and the pages that it caused."""

    def __init__(
        self,
        seed: str,
        *criteria: Criterion,
        count: int = 1,
        durable: bool = False,
        on_scrape: OnScrape | None = None,
        **options: Any,
    ) -> None:
        """`durable`: it can be restarted. `on_scrape` gets each scrape and the alerts that
        it raises.
        """
        make = DurableHarness if durable else SinkHarness
        known = {"references": scenarios(count), "drift": Drift()}
        self.harness = make(*(criteria or (PASS,)), **{**known, **options})
        self.random = Random(seed)
        self.began = self.harness.now
        self.pages: list[tuple[float, Page]] = []
        """When each alert began to fire, in the order of time."""
        self.firing: set[Page] = set()
        self._on_scrape = on_scrape
        self._next_scrape: float | None = None
        """`None` if nothing was published since the last one."""

    @property
    def now(self) -> float:
        """The virtual time, in Unix seconds."""
        return self.harness.now

    def pass_time(self, until: float) -> None:
        """Let the clock run, and scrape when something may have changed."""
        if self._on_scrape is not None:
            self._scrape_always(until)
        elif self._next_scrape is not None and self._next_scrape <= until:
            self._scrape(self._next_scrape)
        if until - self.now > SILENT_S:
            self._scrape(until)
        self.harness.now = until

    def score(self, value: float, scenario: str = "s0", **fields: Any) -> None:
        """Publish a score now."""
        self.harness.publish(value, scenario_id=scenario, **fields)
        if self._next_scrape is None:
            self._next_scrape = (self.now // SCRAPE_S + 1) * SCRAPE_S

    def run(self, seconds: float, per_hour: float, draw: Draw, **fields: Any) -> None:
        """Publish scores at random times."""
        end = self.now + seconds
        while True:
            at = self.now + self.random.expovariate(per_hour / HOUR_S)
            if at > end:
                self.pass_time(end)
                return
            self.pass_time(at)
            self.score(draw(self.random), **fields)

    def run_wandering(self, seconds: float, traffic: Wandering) -> None:
        """Publish the scores of this traffic."""
        end = self.now + seconds
        for at, number, value in traffic.scores(self.random, self.now, end):
            self.pass_time(at)
            self.score(value, f"s{number}")
        self.pass_time(end)

    def hours_until_page(self, most: float, *senders: Sender) -> float:
        """Go on until the next page; returns after how many hours, at most `most`. Looks after each
        score, so the intervals of scrapes and rules come on top.
        """
        began, pages = self.now, len(self.pages)
        while len(self.pages) == pages:
            sender = self.random.choices(senders, [one.per_hour for one in senders])[0]
            per_hour = sum(one.per_hour for one in senders)
            at = self.now + self.random.expovariate(per_hour / HOUR_S)
            if at > began + most * HOUR_S:
                return most
            self.pass_time(at)
            self.score(sender.draw(self.random), **sender.fields)
            self._scrape(at)
        return (self.now - began) / HOUR_S

    def learned(self, rows: Iterable[Row]) -> None:
        """Continue from what detectors have learned, at the present time."""
        self.harness.sink.restore(rows, lambda wants: (), self.now)

    def restart(self) -> None:
        """Stop, and continue from what was committed."""
        assert isinstance(self.harness, DurableHarness)
        self.harness = self.harness.restarted(references=self.harness.references)

    def commit(self) -> None:
        """Store what changed."""
        assert isinstance(self.harness, DurableHarness)
        self.harness.commit()

    def _scrape_always(self, until: float) -> None:
        at = (self.now // SCRAPE_S + 1) * SCRAPE_S
        while at <= until:
            self._scrape(at)
            at += SCRAPE_S

    def _scrape(self, at: float) -> None:
        self._next_scrape = None
        sink, now = self.harness.sink, self.harness.now
        # Adjusted evidence is never above the evidence, and the exposition takes long to render.
        quiet = all(one.drift.evidence <= 365 for one in sink.shown.drifts())
        if quiet and not self.firing and self._on_scrape is None:
            return
        self.harness.now = at
        families = list(sink.shown.collect())
        self.harness.now = now
        found = firing(families)
        self.pages += [(at, page) for page in sorted(found - self.firing)]
        self.firing = found
        if self._on_scrape is not None:
            self._on_scrape(families, found)

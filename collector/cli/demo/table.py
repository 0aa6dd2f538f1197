"""The live table of `pathgauge demo`, made from the text of the collector's own `/metrics`.

It reads only what Prometheus reads, so alerts can be written for everything that it shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from prometheus_client.parser import text_string_to_metric_families
from rich.box import SIMPLE_HEAD
from rich.table import Table

SeriesKey: TypeAlias = tuple[str, str, str]
"""Agent, scenario and criterion; empty when a metric does not have the label."""


@dataclass(frozen=True, slots=True)
class Row:
    """The window of one criterion. `None` means that the series does not exist."""

    agent: str
    scenario: str
    criterion: str
    mean: float
    threshold: float
    samples: float | None
    scored_at: float | None
    """Unix seconds."""
    breached: bool


def read_rows(metrics: str) -> list[Row]:
    """The rows of all criteria that have a score and a threshold, sorted."""
    gauges = _gauges(metrics)
    thresholds = gauges["pathgauge_threshold"]
    return [
        Row(
            *key,
            mean=mean,
            threshold=thresholds[key],
            samples=gauges["pathgauge_score_window_samples"].get(key),
            scored_at=gauges["pathgauge_last_evaluation_timestamp_seconds"].get((*key[:2], "")),
            breached=gauges["pathgauge_threshold_breached"].get(key) == 1,
        )
        for key, mean in sorted(gauges["pathgauge_score_window_mean"].items())
        if key in thresholds
    ]


def render(metrics: str, now: float) -> Table:
    """A table that fits 80 columns, grouped by agent and scenario. `now` is Unix seconds."""
    table = Table(
        "",
        title="scores as Prometheus sees them",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("mean", "threshold", "samples", "scored"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for (agent, scenario), rows in groupby(
        read_rows(metrics), key=lambda row: (row.agent, row.scenario)
    ):
        group = list(rows)
        table.add_row(f"{agent} {scenario}", "", "", "", _age(group[0], now), style="bold")
        for row in group:
            table.add_row(*_cells(row), style="red" if row.breached else None)
    return table


def _age(row: Row, now: float) -> str:
    return "" if row.scored_at is None else f"{max(0.0, now - row.scored_at):.0f} s ago"


def _cells(row: Row) -> tuple[str, ...]:
    samples = "" if row.samples is None else f"{row.samples:.0f}"
    return (
        f"  {row.criterion}",
        f"{row.mean:.3f}",
        f"{row.threshold:.3f}",
        samples,
        "",
        "breached" if row.breached else "",
    )


def _gauges(metrics: str) -> Mapping[str, Mapping[SeriesKey, float]]:
    gauges: defaultdict[str, dict[SeriesKey, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples if family.type == "gauge" else ():
            agent, scenario, criterion = (
                sample.labels.get(label, "") for label in ("agent", "scenario", "metric")
            )
            gauges[sample.name][agent, scenario, criterion] = sample.value
    return gauges

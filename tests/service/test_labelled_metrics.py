"""The metrics of several scorers become families with a label that tells the scorers apart."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pathgauge.collector.service.labelled_metrics import labelled


def of_scorer(commits: float) -> list[Metric]:
    up = GaugeMetricFamily("up", "Whether it runs.", value=1)
    counted = CounterMetricFamily("commits", "Commits.", labels=("what",))
    counted.add_metric(("results",), commits)
    return [up, counted]


def test_each_family_comes_once_with_the_samples_of_all() -> None:
    found = list(labelled("scorer", {"0": of_scorer(3), "1": of_scorer(4)}))
    assert [(one.name, one.documentation, one.type) for one in found] == [
        ("up", "Whether it runs.", "gauge"),
        ("commits", "Commits.", "counter"),
    ]
    assert [(one.name, one.labels, one.value) for family in found for one in family.samples] == [
        ("up", {"scorer": "0"}, 1),
        ("up", {"scorer": "1"}, 1),
        ("commits_total", {"what": "results", "scorer": "0"}, 3),
        ("commits_total", {"what": "results", "scorer": "1"}, 4),
    ]

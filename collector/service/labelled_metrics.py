"""Joins the metrics of several scorers, with a label that tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import Metric


def labelled(label: str, metrics: Mapping[str, Iterable[Metric]]) -> Iterator[Metric]:
    """The metrics of all, by the value of `label`. Each family comes once."""
    families: dict[str, Metric] = {}
    for value, found in metrics.items():
        for metric in found:
            family = families.setdefault(
                metric.name, Metric(metric.name, metric.documentation, metric.type)
            )
            for sample in metric.samples:
                family.samples.append(sample._replace(labels={**sample.labels, label: value}))
    return iter(families.values())

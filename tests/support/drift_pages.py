"""The alerts about drift, evaluated on one scrape as the shipped rules do.

promtool needs minutes for a few simulated days, so years are evaluated with this; some courses are
evaluated with both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client.core import Metric

SCORE, VERSION = "PathgaugeScoreDrift", "PathgaugeVersionDrift"
EVIDENCE, LIMIT = "pathgauge_drift_adjusted_evidence_days", "pathgauge_drift_limit"


class Page(NamedTuple):
    """An alert with the labels that tell it from others."""

    alert: str
    agent: str
    scenario: str
    metric: str
    against: str


def firing(families: Iterable[Metric]) -> set[Page]:
    """The alerts that a scrape raises. A collector without tenants and judges is expected."""
    limit: float | None = None
    evidence: dict[Page, float] = {}
    for family in families:
        for sample in family.samples:
            if sample.name == LIMIT:
                limit = sample.value
            elif sample.name == EVIDENCE:
                of = sample.labels
                alert = VERSION if of["against"] == "version" else SCORE
                page = Page(alert, of["agent"], of["scenario"], of["metric"], of["against"])
                evidence[page] = sample.value
    if limit is None:
        return set()
    above = {page for page, days in evidence.items() if days > limit}
    explained = {
        (page.agent, page.metric) for page in above if page.against in ("threshold", "learned")
    }
    return {
        page
        for page in above
        if page.against != "scenarios" or (page.agent, page.metric) not in explained
    }

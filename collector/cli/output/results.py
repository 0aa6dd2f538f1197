"""The lists of `pathgauge results`: results, clusters of failures, and scenario ids without a
reference.
"""

from __future__ import annotations

from datetime import datetime

from pathgauge.collector.api import models
from pathgauge.collector.cli.output.listing import Entry, Heading
from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.cli.output.report import style_of

RESULT_HEADINGS = (
    Heading("time"),
    Heading("agent"),
    Heading("version", on_terminal=False),
    Heading("scenario"),
    Heading("verdict"),
    Heading("category"),
    Heading("why"),
    Heading("scores", on_terminal=False),
    Heading("seconds", on_terminal=False),
    Heading("tenant", on_terminal=False),
    Heading("trace"),
    Heading("span", on_terminal=False),
)
CLUSTER_HEADINGS = (
    Heading("failures", right=True),
    Heading("agent"),
    Heading("scenario"),
    Heading("category"),
    Heading("why"),
    Heading("first", on_terminal=False),
    Heading("last"),
    Heading("tenant", on_terminal=False),
    Heading("trace"),
    Heading("span", on_terminal=False),
)
UNMATCHED_HEADINGS = (
    Heading("scenario"),
    Heading("invocations", right=True),
    Heading("closest known ids"),
    Heading("tenant", on_terminal=False),
)


def result_entry(result: models.Result) -> Entry:
    """A result."""
    scores = ", ".join(
        f"{one.name} {number(one.value)}" for one in result.criteria if one.value is not None
    )
    cells = (
        time_text(result.time),
        result.agent,
        result.agent_version,
        result.scenario_id,
        verdict_text(result.verdict),
        result.category,
        why(result),
        scores,
        result.duration_s,
        result.tenant,
        result.trace_id,
        result.span_id,
    )
    return Entry(cells, result, style_of(result.verdict))


def cluster_entry(cluster: models.Cluster) -> Entry:
    """A cluster of failures."""
    cells = (
        cluster.failures,
        cluster.agent,
        cluster.scenario_id,
        cluster.category,
        cluster.signature,
        time_text(cluster.first),
        time_text(cluster.last),
        cluster.tenant,
        cluster.trace_id,
        cluster.span_id,
    )
    return Entry(cells, cluster)


def unmatched_entry(scenario: models.UnmatchedScenario) -> Entry:
    """A scenario id without a reference."""
    closest = ", ".join(scenario.closest)
    cells = scenario.scenario_id, scenario.invocations, closest, scenario.tenant
    return Entry(cells, scenario)


def why(result: models.Result) -> str:
    """What failed, or why something has no value, in one line."""
    if result.signature is not None:
        return result.signature
    errors = (f"{one.name}: error" for one in result.criteria if one.verdict == "error")
    reasons = (one.reason for one in result.criteria if one.verdict == "not_evaluated")
    known = dict.fromkeys(filter(None, (result.unmatched, *reasons)))
    return ", ".join((*errors, *(reason.replace("_", " ") for reason in known)))


def time_text(time: datetime) -> str:
    """UTC with seconds, such as `2026-11-23T03:00:00Z`; `--since` accepts it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")

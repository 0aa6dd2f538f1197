"""Streams of scores that became worse, and agents that call other tools, as text."""

from __future__ import annotations

from rich.console import Console

from pathgauge.collector.api.drift_models import ChangedMiss, DriftReport, ScoreDrift
from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.output.listing import Entry, Heading, print_of_tenants
from pathgauge.collector.cli.output.numbers import days, number, time_text
from pathgauge.collector.cli.output.traffic import print_traffic

_STREAMS = (
    Heading("scenario"),
    Heading("metric"),
    Heading("against"),
    Heading("alert"),
    Heading("evidence (days)", right=True),
    Heading("adjusted (days)", right=True),
    Heading("since"),
    Heading("after version"),
    Heading("mean", right=True),
    Heading("before", right=True),
    Heading("baseline", right=True),
    Heading("scores", right=True),
)
_CHANGES = (
    Heading("scenario"),
    Heading("metric"),
    Heading("what changed"),
    Heading("tool"),
    Heading("argument"),
    Heading("share of loss", right=True),
    Heading("each evaluation", right=True),
    Heading("before", right=True),
)


def print_drift(found: DriftReport, out: Console) -> None:
    """Print a row for each stream, and what changed in those with an alarm. Rows name their tenant
    if there are several.
    """
    if not found.streams and not found.traffic:
        print_messages(["no scores of this agent, scenario and metric were compared yet"])
        return
    tenants = {one.tenant for one in found.streams} | {one.tenant for one in found.traffic}
    with_tenant = len(tenants) > 1
    if found.streams:
        rows = ((one.tenant, _stream(one)) for one in found.streams)
        print_of_tenants(_STREAMS, rows, out, with_tenant=with_tenant)
    for stream in found.streams:
        if stream.changes:
            out.print()
            rows = ((stream.tenant, _change(stream, one)) for one in stream.changes)
            print_of_tenants(_CHANGES, rows, out, with_tenant=with_tenant)
    if found.further_streams:
        print_messages([f"{found.further_streams} more are not shown: name a scenario or --metric"])
    if found.traffic:
        if found.streams:
            out.print()
        print_traffic(found.traffic, out, with_tenant=with_tenant)


def _stream(one: ScoreDrift) -> Entry:
    against = f"version before {one.version}" if one.version else one.against
    cells = (
        one.scenario_id or "(all)",
        one.metric,
        against,
        "yes" if one.alarm else "no",
        days(one.evidence_days),
        days(one.adjusted_evidence_days),
        time_text(one.since),
        one.after_version,
        _number(one.mean),
        _number(one.mean_before),
        "learning" if one.baseline is None else number(one.baseline),
        one.samples,
    )
    return Entry(cells, one, "red" if one.alarm else "")


def _change(stream: ScoreDrift, one: ChangedMiss) -> Entry:
    rates = number(one.share), number(one.rate), number(one.rate_before)
    place = stream.scenario_id or "(all)", stream.metric
    return Entry((*place, one.kind, one.tool, one.argument, *rates), one)


def _number(value: float | None) -> str:
    return "" if value is None else number(value)

"""Agents that call other tools than before, as text."""

from __future__ import annotations

from rich.console import Console

from pathgauge.collector.api.traffic_models import ChangedBehaviour, TrafficDrift
from pathgauge.collector.cli.output.listing import Entry, Heading, print_of_tenants
from pathgauge.collector.cli.output.numbers import days, number, time_text
from pathgauge.scorers.matching.wording import counted

_STREAMS = (
    Heading("tool calls of"),
    Heading("status"),
    Heading("alert"),
    Heading("evidence (days)", right=True),
    Heading("since"),
    Heading("invocations", right=True),
    Heading("still needed", right=True),
)
_CHANGES = (
    Heading("what changed"),
    Heading("name"),
    Heading("is"),
    Heading("share of difference", right=True),
    Heading("each invocation", right=True),
    Heading("before", right=True),
)


def print_traffic(streams: list[TrafficDrift], out: Console, *, with_tenant: bool) -> None:
    """Print a row for each stream, and what changed in those with an alarm."""
    rows = ((one.tenant, _stream(one)) for one in streams)
    print_of_tenants(_STREAMS, rows, out, with_tenant=with_tenant)
    for stream in streams:
        if stream.changes:
            out.print()
            rows = ((stream.tenant, _change(one)) for one in stream.changes)
            print_of_tenants(_CHANGES, rows, out, with_tenant=with_tenant)


def _stream(one: TrafficDrift) -> Entry:
    cells = (
        f"version {one.version}" if one.version else "known versions",
        one.status.replace("_", " "),
        "yes" if one.alarm else "no",
        days(one.evidence_days),
        time_text(one.since),
        one.invocations,
        _needed(one),
    )
    return Entry(cells, one, "red" if one.alarm else "")


def _needed(one: TrafficDrift) -> str:
    needed = (
        [f"{counted(one.missing_invocations, 'invocation')}"] if one.missing_invocations else []
    )
    if one.missing_hours:
        needed.append(counted(round(one.missing_hours), "hour"))
    return ", ".join(needed)


def _change(one: ChangedBehaviour) -> Entry:
    rates = number(one.share), number(one.rate), number(one.rate_before)
    return Entry((one.kind, one.name, one.direction, *rates), one)

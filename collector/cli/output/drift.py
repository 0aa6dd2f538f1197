"""Streams of scores that became worse, and agents that call other tools, as text."""

from __future__ import annotations

from rich.console import Console

from pathgauge.collector.api.drift_models import ChangedMiss, DriftReport, ScoreDrift
from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.output.listing import Entry, Heading, Listing
from pathgauge.collector.cli.output.numbers import number, time_text
from pathgauge.collector.cli.output.traffic import print_traffic

_STREAMS = (
    Heading("scenario"),
    Heading("metric"),
    Heading("against"),
    Heading("evidence (days)", right=True),
    Heading("since"),
    Heading("after version"),
    Heading("mean", right=True),
    Heading("before", right=True),
    Heading("baseline", right=True),
    Heading("scores", right=True),
)
_CHANGES = (
    Heading("what changed"),
    Heading("tool"),
    Heading("argument"),
    Heading("share of loss", right=True),
    Heading("each evaluation", right=True),
    Heading("before", right=True),
)


def print_drift(found: DriftReport, out: Console) -> None:
    """Print a row for each stream, and what changed in those with an alarm."""
    if not found.streams and not found.traffic:
        print_messages(["no scores of this agent, scenario and metric were compared yet"])
        return
    if found.streams:
        Listing(_STREAMS, "text", out).print(map(_stream, found.streams))
    for stream in found.streams:
        if stream.changes:
            out.print()
            Listing(_CHANGES, "text", out).print(map(_change, stream.changes))
    if found.further_streams:
        print_messages([f"{found.further_streams} more are not shown: name a scenario or --metric"])
    if found.traffic:
        if found.streams:
            out.print()
        print_traffic(found.traffic, out)


def _stream(one: ScoreDrift) -> Entry:
    against = f"version before {one.version}" if one.version else one.against
    cells = (
        one.scenario_id or "(all)",
        one.metric,
        against,
        number(one.evidence_days),
        time_text(one.since),
        one.after_version,
        _number(one.mean),
        _number(one.mean_before),
        "learning" if one.baseline is None else number(one.baseline),
        one.samples,
    )
    return Entry(cells, one, "red" if one.alarm else "")


def _change(one: ChangedMiss) -> Entry:
    rates = number(one.share), number(one.rate), number(one.rate_before)
    return Entry((one.kind, one.tool, one.argument, *rates), one)


def _number(value: float | None) -> str:
    return "" if value is None else number(value)

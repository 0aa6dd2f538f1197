"""Builds the answer of the tool about drift from that of the API."""

from __future__ import annotations

from pathgauge.collector.api.drift_models import ChangedMiss, DriftReport, ScoreDrift
from pathgauge.collector.api.mcp import answers
from pathgauge.collector.api.mcp.shaping import Shaper, optional_name
from pathgauge.collector.api.mcp.untrusted import name


def drift(shaper: Shaper, found: DriftReport, *, only_alarms: bool) -> answers.DriftAnswer:
    """Streams of scores; `only_alarms`: those that became worse."""
    streams = [one for one in found.streams if one.alarm or not only_alarms]
    left_out = []
    if found.further_streams:
        left_out.append(f"further streams with less evidence: {found.further_streams}")
    return answers.DriftAnswer(
        left_out=left_out,
        streams=[_stream(shaper, one) for one in shaper.some("streams", streams)],
    )


def _stream(shaper: Shaper, one: ScoreDrift) -> answers.Drift:
    return answers.Drift(
        tenant=name(one.tenant) or None,
        agent=name(one.agent),
        scenario_id=optional_name(one.scenario_id),
        metric=name(one.metric),
        judge=optional_name(one.judge),
        alarm=one.alarm,
        against=one.against,
        version=optional_name(one.version),
        evidence_days=one.evidence_days,
        adjusted_evidence_days=one.adjusted_evidence_days,
        since=one.since,
        after_version=optional_name(one.after_version),
        mean_before=one.mean_before,
        mean=one.mean,
        samples=one.samples,
        baseline=one.baseline,
        changes=[_change(change) for change in shaper.some("changes", one.changes)],
    )


def _change(one: ChangedMiss) -> answers.ChangedMiss:
    return answers.ChangedMiss(
        kind=one.kind,
        tool=name(one.tool) or None,
        argument=name(one.argument) or None,
        share=one.share,
        rate=one.rate,
        rate_before=one.rate_before,
    )

"""Runs as the evidence of a collector shows them."""

from __future__ import annotations

from pathgauge.collector.core.curation.grouping import Observed
from pathgauge.collector.core.evidence.evidence import Evidence


def observed_in(evidence: Evidence) -> Observed | None:
    """The run; `None` if it is too long to be kept in full."""
    if evidence.cut:
        return None
    failed = any(one.verdict == "failed" for one in evidence.criteria)
    return Observed(evidence.invocation, failed, evidence.turn is not None, evidence.turn_index)

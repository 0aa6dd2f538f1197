"""Runs as the evidence of a collector shows them."""

from __future__ import annotations

from pathgauge.collector.core.curation.grouping import Observed
from pathgauge.collector.core.evidence.evidence import Evidence
from pathgauge.collector.core.feedback.opinion import NOBODY, Opinion
from pathgauge.collector.core.references import OF_KNOWN_SCENARIO


def observed_in(evidence: Evidence, people: Opinion = NOBODY) -> Observed | None:
    """The run, and what people say of it; `None` if it is too long to be kept in full."""
    if evidence.cut:
        return None
    failed = any(one.verdict == "failed" for one in evidence.criteria)
    matched = evidence.turn is not None or evidence.unmatched in OF_KNOWN_SCENARIO
    return Observed(evidence.invocation, failed, matched, evidence.turn_index, people)

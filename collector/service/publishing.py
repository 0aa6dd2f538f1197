"""Writes what a scorer tells the gauge into each of its commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pathgauge.collector.core.agent_records import NAME as AGENT_RECORDS
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import Progress, publications
from pathgauge.collector.store.evidence.policy import EvidencePolicy
from pathgauge.collector.store.evidence.prepared import PreparedEvidence


class Publishing:
    """For the pipeline thread of a scorer."""

    def __init__(
        self,
        telemetry: InternalTelemetry,
        evidence: EvidencePolicy,
        *,
        with_content: bool,
        with_evidence: bool,
    ) -> None:
        """`with_content`: a sink needs the content of invocations. `with_evidence`: the gauge
        stores the results; otherwise the commit of the scorer does.
        """
        self._telemetry = telemetry
        self._evidence = PreparedEvidence(evidence)
        self._with_content = with_content
        self._with_evidence = with_evidence
        self._counted: dict[tuple[str, ...], int] = {}

    def __call__(self, progress: Progress) -> Progress:
        """The progress with a publication, if there is anything to tell."""
        counts = tuple(self._increments())
        records = [row for row in progress.counts if row.key[0] == AGENT_RECORDS]
        if not (counts or records or progress.outcomes):
            return progress
        evidence = self._evidence.of(progress.outcomes, progress.wall)
        publication = Publication(progress.wall, progress.outcomes, counts, records)
        if self._with_evidence:
            publication = replace(publication, evidence=evidence)
        body = publications.encode(publication, with_content=self._with_content)
        return replace(progress, publication=body, evidence=evidence)

    def _increments(self) -> Iterator[Row]:
        """What was counted since the last call. A count of 0 is told once: its series begins."""
        for counter in self._telemetry:
            if counter.local:
                continue
            for labels, count in counter.items():
                key = (counter.name, *labels)
                added = count - self._counted.get(key, 0)
                if added or (labels and key not in self._counted):
                    self._counted[key] = count
                    yield Row(key, (added,))

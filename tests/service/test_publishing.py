"""What scorers count arrives at the gauge as one process counts it."""

from __future__ import annotations

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import resolve
from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.evaluations.accounting import count_conversation
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.publications import Arrived, Publications
from pathgauge.collector.service.publishing import Publishing
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Progress, Usage, publications
from pathgauge.collector.store.evidence.policy import EvidencePolicy
from pathgauge.scorers.types import Reference, ReferenceTurn

SETUP = resolve(Config())


def test_states_of_turns_that_no_conversation_had_are_0_as_in_one_process() -> None:
    reference = Reference("trip", (ReferenceTurn(), ReferenceTurn()))
    ended = ConversationResult("", "c", reference, None, None, (), 2, 0, 0)
    scorer = InternalTelemetry()
    publishing = Publishing(scorer, EvidencePolicy(), with_content=False, with_evidence=False)
    counted = InternalTelemetry()
    usage = CollectorUsage(Usage(), PipelineUsage(), 0, 0, 0.0)
    records = AgentRecords()
    gauge = Gauge(Config(), SETUP, counted, None, usage=lambda: usage, queues={}, records=records)
    applied = Publications(
        gauge,
        counted,
        records,
        decode=lambda body: publications.decode(body, SETUP.evaluator, SETUP.references),
        commit=lambda progress: True,
    )
    for row in (1, 2):
        count_conversation(ended, scorer)
        body = publishing(Progress(row, 0.0, 0.0)).publication
        assert body is not None
        applied.take(Arrived("scorer-0", row, body))
    assert counted.case_turns.items() == scorer.case_turns.items()
    assert publishing(Progress(3, 0.0, 0.0)).publication is None

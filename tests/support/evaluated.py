"""Evaluations of simple invocations against a reference of two calls, and a store for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    Evaluator,
    failed,
)
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.pipeline_events import PublishedEvent
from pathgauge.collector.core.references import Match
from pathgauge.collector.store import Progress
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span_id, trace_id
from pathgauge.scorers.types import ExpectedCall, Invocation, Reference, ReferenceTurn, ToolCall

WALL = 1_795_000_000.0
"""The Unix time of the first commit."""
EXPECTED = ReferenceTurn(
    user_input="Where is my parcel?",
    tool_calls=(ExpectedCall("find_order", {"order": "A-1"}), ExpectedCall("track")),
    response="It is in Bremen.",
)
_CALLS = {
    "passed": (ToolCall("find_order", {"order": "A-1"}), ToolCall("track", {})),
    "failed": (ToolCall("find_order", {"order": "A-2"}), ToolCall("track", {})),
    "stopped": (ToolCall("find_order", {"order": "A-1"}),),
}


def evaluation(
    name: str,
    outcome: str = "failed",
    *,
    tenant: str = "",
    scenario: str = "parcel",
    agent: str = "support",
    version: str = "1",
    revision: int = 0,
    matched: bool = True,
) -> Evaluation:
    """An evaluation whose ids are made from `name`."""
    invocation = Invocation(
        trace_id(name),
        span_id(name),
        "genai",
        tenant=tenant,
        agent=agent,
        agent_version=version,
        scenario_id=scenario,
        user_input="Where is my parcel?",
        tool_calls=_CALLS[outcome],
        final_response="It is in Bremen.",
        start_ns=1_000_000_000,
        end_ns=3_000_000_000,
    )
    reference = Reference(scenario, (EXPECTED,), "v1", "parcel.yaml:1")
    match = Match(reference, EXPECTED, 0) if matched else Match(unmatched="unknown_scenario")
    evaluator = Evaluator((Criterion("trajectory", ToolTrajectoryAvgScore(), 1.0),))
    return with_failure(evaluator.evaluate(invocation, match, revision=revision))


def raised(name: str) -> Evaluation:
    """An evaluation without a reference, whose scorer has raised an error."""
    result = failed(Criterion("own_scorer", ToolTrajectoryAvgScore(), 1.0), KeyError("price"))
    return replace(evaluation(name, matched=False), results=(result,))


@contextmanager
def opened(
    folder: Path, policy: EvidencePolicy | None = None, max_bytes: int = 1 << 30
) -> Iterator[SqliteStore]:
    """A store that is open."""
    store = SqliteStore(folder, Retention(max_bytes=max_bytes), evidence=policy)
    store.open()
    store.start(lambda _: True, lambda: 0.0)
    try:
        yield store
    finally:
        store.close()


def commit(store: SqliteStore, events: Sequence[PublishedEvent], wall: float = WALL) -> None:
    """Store events as of this Unix time."""
    assert store.commit(Progress(0, 0.0, wall, events))

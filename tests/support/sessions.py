"""Results of sessions of simple invocations."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pathgauge.collector.core.evaluations.evaluator import Evaluation, SessionResult
from pathgauge.collector.core.sessions.session import EndedBy, SessionBounds, result_key
from pathgauge.collector.testing import trace_id
from support.evaluated import evaluation

BOUNDS = SessionBounds(idle=10.0, settle=1.0, reopen=100.0, max_age=1_000.0)
_NS = 1_000_000_000


def session(
    name: str,
    conversation: str,
    outcome: Literal["passed", "failed"] = "passed",
    *,
    tenant: str = "",
    scenario: str = "parcel",
    at: float = 1.0,
    ended_by: EndedBy = "idle",
    revision: int = 0,
) -> Evaluation:
    """The result of a session of one turn that took two seconds from the Unix time `at`."""
    turn = evaluation(name, outcome, tenant=tenant, scenario=scenario, revision=revision)
    _, whole_id, span_id = result_key((tenant, trace_id(f"session {name}")))
    whole = replace(
        turn.invocation,
        trace_id=whole_id,
        span_id=span_id,
        dialect="session",
        conversation_id=conversation,
        start_ns=int(at * _NS),
        end_ns=int((at + 2) * _NS),
    )
    members = (turn.key[1:],)
    return replace(turn, invocation=whole, session=SessionResult(ended_by, members))

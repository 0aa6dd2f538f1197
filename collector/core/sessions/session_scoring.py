"""Scores sessions that have ended.

The result of a session has the form of the result of an invocation, so that everything that shows,
stores and judges results works for both. Its invocation stands for the session as a whole: agent,
scenario, tokens and times, but no content.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import SESSION, Evaluation, SessionResult
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.scoring import Scoring
from pathgauge.collector.core.sessions.session import EndedBy, Session, result_key
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.types import Flag, Invocation


def evaluate(
    session: Session, by: EndedBy, scoring: Scoring, references: ReferenceSet
) -> Evaluation:
    """The next result of a session."""
    kept = list(session.ordered())
    invocations = [turn.invocation for turn in kept]
    whole = whole_of(session, invocations)
    result = SessionResult(
        by,
        tuple((one.trace_id, one.span_id) for one in invocations),
        tuple(SessionTurn(turn.invocation, turn.scores) for turn in kept),
    )
    match = references.match_session(whole)
    return scoring.evaluate_session(whole, match, result, session.revision)


def whole_of(session: Session, invocations: Sequence[Invocation]) -> Invocation:
    """The invocation that stands for a session with these turns, in order."""
    each = partial(_each, invocations)
    scenarios = set(each("scenario_id"))
    flags: frozenset[Flag] = frozenset({"scenario_conflict"}) if len(scenarios) > 1 else frozenset()
    last = next((one for one in reversed(invocations) if one.agent is not None), invocations[-1])
    _, trace_id, span_id = result_key(session.key)
    return Invocation(
        trace_id=trace_id,
        span_id=span_id,
        dialect=SESSION,
        tenant=session.tenant,
        agent=last.agent,
        agent_version=last.agent_version,
        scenario_id=_only(scenarios),
        conversation_id=session.conversation,
        user_id=_only(set(each("user_id"))),
        run_id=_only(set(each("run_id"))),
        input_tokens=_sum(each("input_tokens"), len(invocations)),
        output_tokens=_sum(each("output_tokens"), len(invocations)),
        start_ns=min(each("start_ns"), default=None),
        end_ns=max(each("end_ns"), default=None),
        flags=flags,
        session_end=next(reversed(each("session_end")), None),
    )


def _each(invocations: Sequence[Invocation], name: str) -> list[Any]:
    """The known values of a field, in order."""
    values = (getattr(one, name) for one in invocations)
    return [value for value in values if value is not None]


def _only(values: Set[str]) -> str | None:
    """`None` if there are several, or none."""
    return next(iter(values)) if len(values) == 1 else None


def _sum(known: Sequence[int], count: int) -> int | None:
    """`None` if not all are known."""
    return sum(known) if len(known) == count else None

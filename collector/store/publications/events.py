"""Events as lists of JSON values, which name their kind first.

The order of the values in a list is part of the format of publications.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, Literal

from pathgauge.collector.core.evaluations.conversation import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Result, SessionResult
from pathgauge.collector.core.evaluations.invocation_json import from_json, to_json
from pathgauge.collector.core.evaluations.shadow_result import Shadowed, ShadowResult
from pathgauge.collector.core.evidence.failure import Failure
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.collector.core.feedback.answer import Answer, Scale
from pathgauge.collector.core.pipeline_events import (
    FeedbackGiven,
    Judged,
    PublishedEvent,
    ShadowJudged,
    Withdrawn,
)
from pathgauge.collector.core.references import Match
from pathgauge.collector.store.publications.invocations import of_slim, slim
from pathgauge.collector.store.publications.tables import Resolver, Tables
from pathgauge.scorers.trajectories.adk import TrajectoryScorer
from pathgauge.scorers.types import Json, Score

MAX_EXPLANATION_CHARS = 4096
"""Longer explanations are cut."""

_END = 12
"""Where the values of an evaluation end."""
_Kind = Literal[
    "evaluation",
    "judged",
    "withdrawn",
    "conversation",
    "session",
    "judged_session",
    "feedback",
    "shadow",
]


def row_of(event: PublishedEvent, tables: Tables, with_content: bool) -> list[Json]:
    """The event; with `with_content`, `content_of` has the invocation instead."""
    if isinstance(event, Evaluation):
        row = _evaluation(event, tables, with_content)
        if event.session is None:
            return ["evaluation", *row]
        return ["session", *row, _session(event.session)]
    if isinstance(event, Judged):
        row = _evaluation(event.evaluation, tables, with_content)
        row += [event.first, event.failed_before]
        if event.evaluation.session is None:
            return ["judged", *row]
        return ["judged_session", *row, _session(event.evaluation.session)]
    if isinstance(event, Withdrawn):
        return ["withdrawn", *event.key]
    if isinstance(event, ShadowJudged):
        return ["shadow", *event.key, event.revision, _shadow(event.shadow)]
    if isinstance(event, FeedbackGiven):
        return ["feedback", *_plain_answer(event.answer)]
    return [
        "conversation",
        event.tenant,
        event.conversation_id,
        tables.reference(event.reference),
        event.agent,
        event.agent_version,
        [[tables.criterion(score.criterion), score.value] for score in event.scores],
        event.matched,
        event.missing,
        event.unexpected,
    ]


def content_of(event: PublishedEvent) -> bytes | None:
    """The whole invocation as JSON; `None` for events without one."""
    if isinstance(event, Judged):
        return to_json(event.evaluation.invocation)
    return to_json(event.invocation) if isinstance(event, Evaluation) else None


def event_of(row: Sequence[Any], content: bytes, resolver: Resolver) -> PublishedEvent:
    """The event that `row_of` and `content_of` have written. Raises `ValueError` or `TypeError`."""
    kind: _Kind = row[0]
    match kind:
        case "evaluation":
            return _evaluation_of(row, content, resolver)
        case "judged":
            return Judged(_evaluation_of(row, content, resolver), *row[_END:])
        case "session":
            return _with_session(_evaluation_of(row, content, resolver), row[-1])
        case "judged_session":
            judged = _with_session(_evaluation_of(row, content, resolver), row[-1])
            return Judged(judged, *row[_END:-1])
        case "withdrawn":
            _, tenant, trace_id, span_id = row
            return Withdrawn((tenant, trace_id, span_id))
        case "conversation":
            return _conversation_of(row, resolver)
        case "shadow":
            _, tenant, trace_id, span_id, revision, shadow = row
            return ShadowJudged((tenant, trace_id, span_id), revision, _shadow_of(*shadow))
        case "feedback":
            return FeedbackGiven(_answer_of(row[1:]))
    raise ValueError(f"found an event {kind!r}, expected one of another kind")


def _plain_answer(answer: Answer) -> list[Json]:
    return [list(value) if isinstance(value, Scale) else value for value in astuple(answer)]


def _answer_of(values: Sequence[Any]) -> Answer:
    answer = Answer(*values)
    return replace(answer, scale=answer.scale and Scale(*answer.scale))


def _evaluation(one: Evaluation, tables: Tables, with_content: bool) -> list[Json]:
    match, failure = one.match, one.failure
    return [
        None if with_content else slim(one.invocation),
        None if match.reference is None else tables.reference(match.reference),
        match.turn_index,
        match.unmatched,
        [_result(result, tables.criterion(result.criterion)) for result in one.results],
        one.closed_by,
        one.revision,
        one.awaits,
        None if failure is None else [failure.category, failure.signature],
        one.misses,
        None if one.shadow is None else _shadow(one.shadow),
    ]


def _shadow(shadow: Shadowed) -> list[Json]:
    return [shadow.setup, shadow.reference, list(map(list, shadow.results))]


def is_newer(event: PublishedEvent) -> bool:
    """Whether an event is one that earlier versions do not know."""
    if isinstance(event, Judged):
        return event.evaluation.session is not None
    if isinstance(event, ConversationResult):
        return any(score.value is None for score in event.scores)
    if isinstance(event, ShadowJudged):
        return True
    return isinstance(event, Evaluation) and event.session is not None


def _session(session: SessionResult) -> list[Json]:
    """The session without its turns."""
    return [session.ended_by, session.members]


def _with_session(evaluation: Evaluation, written: list[Any]) -> Evaluation:
    ended_by, members = written
    found = tuple((trace_id, span_id) for trace_id, span_id in members)
    return replace(evaluation, session=SessionResult(ended_by, found))


def _evaluation_of(row: Sequence[Any], content: bytes, resolver: Resolver) -> Evaluation:
    _, invocation, reference, turn_index, unmatched, results, *rest = row[:_END]
    closed_by, revision, awaits, failure, misses, shadow = rest
    return Evaluation(
        from_json(content) if invocation is None else of_slim(invocation),
        _match(resolver, reference, turn_index, unmatched),
        tuple([_result_of(resolver, reference, result) for result in results]),
        closed_by,
        revision,
        awaits,
        None if failure is None else Failure(*failure),
        tuple([Miss(*miss) for miss in misses]),
        shadow=None if shadow is None else _shadow_of(*shadow),
    )


def _shadow_of(setup: str, reference: str | None, results: Sequence[Sequence[Any]]) -> Shadowed:
    return Shadowed(setup, reference, tuple([ShadowResult(*result) for result in results]))


def _match(resolver: Resolver, index: int | None, turn_index: int | None, unmatched: Any) -> Match:
    if index is None:
        return Match(None, None, turn_index, unmatched)
    reference = resolver.reference(index)
    turn = reference.turns[turn_index or 0] if unmatched is None else None
    return Match(reference, turn, turn_index, unmatched)


def _result(result: Result, criterion: int) -> list[Json]:
    score = result.score
    details = _counted(result) if score.details else {}
    return [criterion, score.value, result.verdict, score.reason, _explanation(score), details]


def _explanation(score: Score) -> str:
    text: object = score.explanation
    return (text if isinstance(text, str) else str(text))[:MAX_EXPLANATION_CHARS]


def _counted(result: Result) -> dict[str, Json]:
    """The details that sinks count."""
    details, criterion = result.score.details, result.criterion
    if isinstance(criterion.scorer, TrajectoryScorer) and "counts" in details:
        return {"counts": details["counts"]}
    judge = details.get("judge") if criterion.judge else None
    if not isinstance(judge, Mapping):
        return {}
    return {"judge": {"agreement": judge.get("agreement"), "samples": judge.get("samples")}}


def _result_of(resolver: Resolver, reference: int | None, row: Sequence[Any]) -> Result:
    criterion, value, verdict, reason, explanation, details = row
    score = Score(value, reason, explanation, details)
    return Result(resolver.criterion(criterion, reference), score, verdict)


def _conversation_of(row: Sequence[Any], resolver: Resolver) -> ConversationResult:
    _, tenant, conversation_id, reference, agent, agent_version, scores, *turns = row
    return ConversationResult(
        tenant,
        conversation_id,
        resolver.reference(reference),
        agent,
        agent_version,
        tuple(
            ConversationScore(resolver.criterion(criterion, reference), value)
            for criterion, value in scores
        ),
        *turns,
    )

"""Scores invocations that are already read, as the pipeline scores those of traces.

Nothing is late here: turns of conversations are numbered once, and judges are waited for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pathgauge.collector.core.evaluations.conversations import Conversations
from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    EvaluationKey,
    Evaluator,
    WhenJudged,
    evaluation_key,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgments
from pathgauge.collector.core.evaluations.turn import Turn, scores_of
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.scoring import Scoring
from pathgauge.collector.core.sessions.session import KeptTurn
from pathgauge.collector.core.sessions.session_scoring import evaluate
from pathgauge.collector.core.sessions.sessions import Sessions
from pathgauge.collector.offline.replay import ONE_SESSION, Replayed
from pathgauge.collector.offline.tables.scoring import JudgeAll
from pathgauge.scorers.types import Invocation, Reference

_CONVERSATION = "this run"


def score_invocations(
    invocations: Iterable[Invocation],
    evaluator: Evaluator,
    references: ReferenceSet,
    judge_all: JudgeAll | None = None,
) -> Replayed:
    """Score the invocations in their order. Without `judge_all` no judge is asked."""
    judging: WhenJudged = "unconfigured" if judge_all is None else "later"
    conversations = Conversations()
    scored: dict[EvaluationKey, Evaluation] = {}

    def score(invocation: Invocation, match: Match) -> Evaluation:
        evaluation = evaluator.evaluate(invocation, match, judging=judging)
        scored[evaluation.key] = evaluation
        return evaluation

    for invocation in _distinct(invocations):
        reference = references.multi_turn(invocation)
        if reference is None or invocation.conversation_id is None:
            score(invocation, references.match(invocation, invocation.turn))
        elif not conversations.place(invocation, reference, 0.0):
            score(invocation, Match(unmatched="unexpected_turn"))
    ended = conversations.drain()
    turns: dict[EvaluationKey, Turn] = {}
    for _, conversation in ended:
        for turn, index in conversation.end():
            evaluation = score(turn.invocation, references.match(turn.invocation, index))
            turn.record(evaluation)
            turns[evaluation.key] = turn
    if judge_all is not None:
        _add_judged(_judged(scored.values(), references, judge_all), scored, turns)
    results = tuple(conversation.result(key) for key, conversation in ended)
    sessions = _of_sessions(list(scored.values()), evaluator, references, judge_all)
    return Replayed("", (*map(with_failure, scored.values()), *sessions), results, ())


def _of_sessions(
    turns: Iterable[Evaluation],
    evaluator: Evaluator,
    references: ReferenceSet,
    judge_all: JudgeAll | None,
) -> Iterable[Evaluation]:
    """The results of the sessions of these turns."""
    if not evaluator.of_sessions:
        return ()
    judging: WhenJudged = "unconfigured" if judge_all is None else "later"
    scoring = Scoring(
        evaluator,
        InternalTelemetry(),
        lambda *_: judging,
        frozenset(),
        None,
        judging_in_shadow=None,
    )
    sessions = Sessions(ONE_SESSION, sys.maxsize)
    for turn in turns:
        scores = {result.criterion.name: result.score.value for result in turn.results}
        sessions.place(KeptTurn(turn.invocation, 0, 0.0, scores), 0.0)
    found: dict[EvaluationKey, Evaluation] = {}
    for session, by in sessions.drain(0.0):
        evaluation = evaluate(session, by, scoring, references)
        if evaluation.results or evaluation.awaits:
            found[evaluation.key] = evaluation
    if judge_all is not None:
        _add_judged(_judged(found.values(), references, judge_all), found, {})
    return found.values()


def _add_judged(
    judged: Iterable[Evaluation],
    scored: dict[EvaluationKey, Evaluation],
    turns: Mapping[EvaluationKey, Turn],
) -> None:
    """Add the results of judges to those of the evaluations, and to their turns."""
    for one in judged:
        known = scored[one.key]
        scored[one.key] = replace(known, results=(*known.results, *one.results))
        if one.key in turns:
            turns[one.key].scores += tuple(scores_of(one))


def as_runs_of(reference: Reference, invocations: Iterable[Invocation]) -> Iterator[Invocation]:
    """The invocations, as runs of this scenario where they name none. Turns without a conversation
    id belong to one conversation.
    """
    for invocation in invocations:
        named = invocation
        if named.scenario_id is None:
            named = replace(named, scenario_id=reference.scenario_id)
        has_turns = named.scenario_id == reference.scenario_id and len(reference.turns) > 1
        if has_turns and named.conversation_id is None and named.turn is None:
            named = replace(named, conversation_id=_CONVERSATION)
        yield named


def _distinct(invocations: Iterable[Invocation]) -> Iterator[Invocation]:
    """The invocations with different identities, which builders do not give them."""
    seen: set[EvaluationKey] = set()
    for number, invocation in enumerate(invocations):
        key = evaluation_key(invocation)
        if key in seen:
            yield replace(invocation, span_id=f"{number:016x}")
        else:
            seen.add(key)
            yield invocation


def _judged(
    scored: Iterable[Evaluation], references: ReferenceSet, judge_all: JudgeAll
) -> Iterator[Evaluation]:
    """The results of the judges."""
    pending = PendingJudgments()
    for evaluation in scored:
        pending.update(evaluation)
    for _, judged in judge_all(pending.changes()[0], references):
        yield judged

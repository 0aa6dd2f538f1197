"""`pathgauge score` gives a session the scores that a running collector gives it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pathgauge import MultiTurnTaskSuccess, SessionTokens, SessionTurns
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.judging.judgment import without_judges
from pathgauge.collector.offline.gate import judge
from pathgauge.collector.offline.replay import Replayed, replay_files
from pathgauge.collector.offline.tables.scoring import JudgeAll
from pathgauge.collector.offline.trace_files import TraceFiles
from support.session_course import SESSION, Course, Sent, turn

SENT = [Sent(5.0, name, number) for number, name in enumerate("abaab")]
CRITERIA = (
    Criterion("session_turns", SessionTurns(), 2.0),
    Criterion("session_tokens", SessionTokens()),
)


def replayed(*criteria: Criterion, judge_all: JudgeAll | None = None) -> Replayed:
    spans = [one for sent in SENT for one in turn(sent)]
    return replay_files(
        TraceFiles(spans=spans),
        Path("traces"),
        Evaluator(criteria),
        ReferenceSet(),
        DEFAULT_KEYS,
        judge_all=judge_all,
    )


def values(evaluations: Iterable[Evaluation]) -> list[list[float | None]]:
    return sorted(
        [result.score.value for result in one.results] for one in evaluations if one.session
    )


def test_offline_and_live_values_are_equal() -> None:
    live = Course()
    for sent in SENT:
        live.send(sent)
    live.wait(SESSION.idle)
    found = values(replayed(*CRITERIA).evaluations)
    assert found == sorted([float(len(one.turns)), one.tokens] for one in live.told())
    assert found == [[2.0, 6.0], [3.0, 9.0]]


def test_a_gate_fails_with_a_session() -> None:
    gate = judge([replayed(*CRITERIA)], Evaluator(CRITERIA))
    assert [str(one) for one in gate.failures] == [
        "session_turns for support Failed. Expected 2, but got 2.5."
    ]
    [coverage] = gate.coverage
    assert (coverage.criterion, coverage.invocations, coverage.scored) == ("session_turns", 2, 2)


def test_judges_are_asked_about_sessions_when_all_turns_are_known() -> None:
    criterion = Criterion("success", MultiTurnTaskSuccess())
    asked: list[int] = []

    def judge_all(
        pending: Iterable[PendingJudgment], references: ReferenceSet
    ) -> list[tuple[PendingJudgment, Evaluation]]:
        waiting = list(pending)
        sessions = [one.session() for one in waiting]
        asked.extend(len(one.turns) for one in sessions if one is not None)
        evaluator = Evaluator((criterion,))
        return [(one, without_judges(one, evaluator, references)) for one in waiting]

    found = replayed(criterion, judge_all=judge_all)
    assert sorted(asked) == [2, 3]
    reasons = [r.score.reason for one in found.evaluations if one.session for r in one.results]
    assert reasons == ["judge_unconfigured"] * 2

"""What a judge is asked about: the run of an example, possibly changed, or a session that ends with
it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pathgauge.collector.offline.judge_check.examples import Example
from pathgauge.scorers.judge_protocol import Ask, Judge
from pathgauge.scorers.session_protocol import SessionJudge, SessionTurn
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score


@dataclass(frozen=True, slots=True)
class Situation:
    """One run, after others of its session."""

    actual: Invocation
    expected: ReferenceTurn | None
    before: tuple[Invocation, ...] = ()

    @classmethod
    def of(cls, example: Example, actual: Invocation | None = None) -> Situation:
        """The situation of an example, with its own run or a changed one."""
        return cls(actual or example.actual, example.expected, example.before)

    async def judged(self, judge: Judge, ask: Ask) -> Score:
        """What a judge says. Only judges of sessions see the turns before."""
        if not isinstance(judge, SessionJudge):
            return await judge.judge(self.actual, self.expected, ask)
        turns = [SessionTurn(invocation) for invocation in (*self.before, self.actual)]
        return await judge.judge_session(turns, self._reference(), ask)

    def _reference(self) -> Reference | None:
        if self.expected is None:
            return None
        unknown = [ReferenceTurn() for _ in self.before]
        return Reference(self.actual.scenario_id or "", (*unknown, self.expected))

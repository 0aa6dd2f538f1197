"""A judge that compares the response with the reference's, without being told which is which.

Models prefer the answer that they read first, or second. So each pair is shown in both orders, and
a preference counts only if it is the same in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pathgauge.scorers.authoring.options import check_texts
from pathgauge.scorers.judge_protocol import Ask
from pathgauge.scorers.judges.label_judge import LabelJudge
from pathgauge.scorers.judges.prompt_members import read_members
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_QUESTION = """\
You compare two answers to the request of a user, and say which serves the user better.

- `first` or `second`: this answer is more correct, more complete, or clearly more helpful.
- `tie`: both say the same in what matters, or both are equally lacking.

Judge meaning. Length, order, layout and politeness alone make no answer better, and neither does \
the place in which it stands.{criteria}

The data has these members; one that is null is not known.
- `user_input`: what the user asked
- `first`: an answer
- `second`: another answer"""

_MEANINGS = {1.0: "better than the reference", 0.5: "as good as the reference", 0.0: "worse"}


@dataclass(frozen=True)
class Pairwise(LabelJudge):
    """1 if the response is better than the reference's, 0.5 if it is as good, 0 if it is worse.
    Each sample asks in both orders; a preference that depends on the order is a tie.
    """

    name: ClassVar[str] = "pairwise"
    needs_reference: ClassVar[bool] = True
    members: ClassVar[tuple[str, ...]] = ("user_input", "response", "expected_response")
    labels: ClassVar[Mapping[str, float | None]] = {"first": 1.0, "tie": 0.5, "second": 0.0}

    criteria: tuple[str, ...] = field(default=(), kw_only=True)
    """What makes an answer better, most important first; in addition to correctness."""

    def __post_init__(self) -> None:
        check_texts("criteria", self.criteria)
        object.__setattr__(self, "criteria", tuple(self.criteria))
        super().__post_init__()

    def instruction_texts(self) -> tuple[str, ...]:
        """The meaning of the labels, and the criteria."""
        lines = "".join(f"\n- {criterion}" for criterion in self.criteria)
        criteria = f"\n\nWhat counts besides, most important first:{lines}" if lines else ""
        return (_QUESTION.format(criteria=criteria),)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The request, and both answers; that of the agent is the first."""
        data = read_members(self.members, actual, expected)
        if isinstance(data, Score):
            return data
        return {
            "user_input": data["user_input"],
            "first": data["response"],
            "second": data["expected_response"],
        }

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Ask in both orders, and compare the preferences."""
        data = self.prompt_data(actual, expected) if expected else None
        if data is None or isinstance(data, Score):
            return await super().judge(actual, expected, ask)
        there = await self.asked(data, ask)
        if there.value is None:
            return there
        swapped = {**data, "first": data["second"], "second": data["first"]}
        back = await self.asked(swapped, ask)
        if back.value is None:
            return back
        return _compared(there, replace(back, value=1.0 - back.value))


def _compared(there: Score, back: Score) -> Score:
    """The preference that both orders share, else a tie."""
    votes = there.details["judge"]["agreement"], back.details["judge"]["agreement"]
    value, agreement, explanation = there.value or 0.0, min(votes), there.explanation
    if there.value != back.value:
        value, agreement = 0.5, 0.5
        explanation = "the preference depends on the order of the answers"
    orders = [there.value, back.value]
    judge = {**there.details["judge"], "agreement": agreement, "orders": orders}
    verdict = _MEANINGS[value]
    details = {**there.details, "verdict": verdict, "judge": judge}
    return Score(value, None, f"{verdict}: {explanation}", details)

"""Samples of one question: whoever asks models and a question come in, the answers and what kept
others away go out.

A sample that failed answers nothing: it withholds its vote, and no other takes its place. So a majority is one of the samples that were
*asked for*, however many of them failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pathgauge.scorers.judge_protocol import AnswerT, Ask, JudgeError, Question
from pathgauge.scorers.types import Json, Reason, Score

MAX_SAMPLES = 32

_FINAL: frozenset[Reason] = frozenset(
    {"budget", "judge_rejected", "judge_unconfigured", "judge_overloaded"}
)
"""Reasons that the next sample would meet again."""

LabelT = TypeVar("LabelT", bound=Hashable)


@dataclass(frozen=True)
class Panel(Generic[AnswerT]):
    """What became of the samples."""

    requested: int
    answers: tuple[AnswerT, ...]
    failed: Mapping[Reason, int]
    failure: JudgeError | None = None
    """What stands for all failures: the one that ended the asking, else the most frequent one."""

    @property
    def has_quorum(self) -> bool:
        """Whether more than half of the requested samples answered."""
        return 2 * len(self.answers) > self.requested

    def undecided(self, line: str) -> Score:
        """The score of a panel that decides nothing: for lack of answers, or as the answers differ,
        which `line` says.
        """
        if self.failure is None or self.has_quorum:
            return Score.not_evaluated("judge_undecided", line)
        answered = f"{len(self.answers)} of {self.requested} samples answered"
        return Score.not_evaluated(
            self.failure.reason, " ".join(f"{answered}: {self.failure}".split())
        )

    def told(self) -> dict[str, Json]:
        """The numbers of samples, as JSON."""
        return {
            "samples": self.requested,
            "answered": len(self.answers),
            "failed": dict(self.failed),
        }


async def ask_panel(
    ask: Ask,
    question: Question[AnswerT],
    samples: int,
    decided: Callable[[Sequence[AnswerT], int], bool],
) -> Panel[AnswerT]:
    """Ask sample after sample. Those that are left are not asked when they can change nothing:
    `decided(answers, left)` says so.
    """
    answers: list[AnswerT] = []
    failures: list[JudgeError] = []
    for sample in range(samples):
        if decided(answers, samples - sample):
            break
        try:
            answers.append(await ask(replace(question, sample=sample)))
        except JudgeError as error:
            failures.append(error)
            if error.reason in _FINAL:
                break
    failed = Counter(error.reason for error in failures)
    return Panel(samples, tuple(answers), dict(failed), _stands_for(failures, failed))


def majority(labels: Sequence[LabelT], requested: int) -> LabelT | None:
    """The label that more than half of the requested samples gave."""
    return next((label for label, count in Counter(labels).items() if 2 * count > requested), None)


def is_decided(labels: Sequence[Hashable], left: int, requested: int) -> bool:
    """Whether there is a majority already, or none can come of the samples that are left."""
    most = max(Counter(labels).values(), default=0)
    return 2 * most > requested or 2 * (most + left) <= requested


def lacks_quorum(answers: Sequence[object], left: int, requested: int) -> bool:
    """Whether no more than half of the requested samples can answer any more."""
    return 2 * (len(answers) + left) <= requested


def _stands_for(failures: Sequence[JudgeError], failed: Counter[Reason]) -> JudgeError | None:
    if not failures or failures[-1].reason in _FINAL:
        return failures[-1] if failures else None
    [(most, _)] = failed.most_common(1)
    return next(error for error in failures if error.reason == most)

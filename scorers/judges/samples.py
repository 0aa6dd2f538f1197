"""Asks the same question several times and collects the answers.

A failed sample counts as requested but not answered, and is not replaced. So a majority is always a
majority of the *requested* samples, however many failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pathgauge.scorers.judge_protocol import AnswerT, Ask, JudgeError, Question
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Json, Reason, Score

MAX_SAMPLES = 32

_FINAL: frozenset[Reason] = frozenset(
    {"budget", "judge_rejected", "judge_unconfigured", "judge_overloaded"}
)
"""Reasons for which the next sample would fail as well."""

LabelT = TypeVar("LabelT", bound=Hashable)


@dataclass(frozen=True)
class SampleResults(Generic[AnswerT]):
    """The results of all samples of a question."""

    requested: int
    answers: tuple[AnswerT, ...]
    failed: Mapping[Reason, int]
    failure: JudgeError | None = None
    """The failure to report: the one that ended the sampling, else the most frequent one."""

    @property
    def has_quorum(self) -> bool:
        """Whether more than half of the requested samples were answered."""
        return 2 * len(self.answers) > self.requested

    def undecided(self, explanation: str) -> Score:
        """A score without a value: with the reason of the failure if too few samples were
        answered, else `judge_undecided` with this explanation.
        """
        if self.failure is None or self.has_quorum:
            return Score.not_evaluated("judge_undecided", explanation)
        answered = f"{len(self.answers)} of {counted(self.requested, 'sample')} answered"
        return Score.not_evaluated(
            self.failure.reason, " ".join(f"{answered}: {self.failure}".split())
        )

    def counts(self) -> dict[str, Json]:
        """The numbers of samples, for the details of a score."""
        return {
            "samples": self.requested,
            "answered": len(self.answers),
            "failed": dict(self.failed),
        }


async def ask_samples(
    ask: Ask,
    question: Question[AnswerT],
    samples: int,
    is_decided: Callable[[Sequence[AnswerT], int], bool],
) -> SampleResults[AnswerT]:
    """Ask one sample after the other.

    Stops early when `is_decided(answers, samples_left)` says that the others change nothing.
    """
    answers: list[AnswerT] = []
    failures: list[JudgeError] = []
    for sample in range(samples):
        if is_decided(answers, samples - sample):
            break
        try:
            answers.append(await ask(replace(question, sample=sample)))
        except JudgeError as error:
            failures.append(error)
            if error.reason in _FINAL:
                break
    counts = Counter(error.reason for error in failures)
    return SampleResults(samples, tuple(answers), dict(counts), _representative(failures, counts))


def majority(labels: Sequence[LabelT], requested: int) -> LabelT | None:
    """The label of more than half of the requested samples."""
    return next((label for label, count in Counter(labels).items() if 2 * count > requested), None)


def is_decided(labels: Sequence[Hashable], left: int, requested: int) -> bool:
    """Whether a label has a majority, or none can get one from the samples that are left."""
    highest = max(Counter(labels).values(), default=0)
    return 2 * highest > requested or 2 * (highest + left) <= requested


def lacks_quorum(answers: Sequence[object], left: int, requested: int) -> bool:
    """Whether at most half of the requested samples can still be answered."""
    return 2 * (len(answers) + left) <= requested


def _representative(failures: Sequence[JudgeError], counts: Counter[Reason]) -> JudgeError | None:
    if not failures:
        return None
    if failures[-1].reason in _FINAL:
        return failures[-1]
    [(most_frequent, _)] = counts.most_common(1)
    return next(error for error in failures if error.reason == most_frequent)

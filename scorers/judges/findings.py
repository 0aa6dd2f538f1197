"""The verdict on statements that the model itself has derived from the data.

Some metrics have no fixed list of rubrics: what a user wanted is only in the conversation. The
model writes down the statements first, and then judges each of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pathgauge.scorers.judges.answers import Findings
from pathgauge.scorers.judges.samples import SampleResults, lacks_quorum
from pathgauge.scorers.judges.verdicts import MAX_REASONING, Verdict, one_line, with_samples
from pathgauge.scorers.types import Json, Score

_TOLERANCE = 0.1
"""An answer agrees with the outcome if its share differs by at most this."""


@dataclass(frozen=True)
class ShareOfFindings(Verdict[Findings]):
    """The share of the statements that hold, averaged over the samples. The statements of two
    samples differ, so there is no majority for one of them.
    """

    plural: str
    """What the statements are, such as `goals`."""
    answer: type[Findings] = Findings

    def is_decided(self, answers: Sequence[Findings], left: int, requested: int) -> bool:
        """Whether too many samples failed."""
        return lacks_quorum(answers, left, requested)

    def score(self, results: SampleResults[Findings]) -> Score:
        """The mean, if enough samples were answered. The details have the statements of the answer
        that is nearest to it.
        """
        if not results.has_quorum:
            return with_samples(results.undecided("too few answers"), results)
        shares = [_share(answer) for answer in results.answers]
        value = statistics.fmean(shares)
        nearest = min(results.answers, key=lambda answer: abs(_share(answer) - value))
        agreeing = sum(abs(share - value) <= _TOLERANCE for share in shares)
        details: dict[str, Json] = {
            "scores": shares,
            self.plural: [
                {
                    "text": one.statement[:MAX_REASONING],
                    "verdict": "yes" if one.holds else "no",
                    "reasoning": one.reasoning[:MAX_REASONING],
                }
                for one in nearest.findings
            ],
        }
        score = Score(value, None, self._explanation(nearest), details)
        return with_samples(score, results, agreement=agreeing / len(shares))

    def _explanation(self, answer: Findings) -> str:
        held = sum(one.holds for one in answer.findings)
        line = f"{held} of {len(answer.findings)} {self.plural}"
        missed = next((one for one in answer.findings if not one.holds), None)
        return line if missed is None else f"{line}; not: {one_line(missed.statement)}"


def _share(answer: Findings) -> float:
    return sum(one.holds for one in answer.findings) / len(answer.findings)

"""Which evidence is kept.

Failures are kept until they are too old or take too much space. Of the passed runs of a scenario
the newest are kept, so that a failure can be compared with what runs usually do; after the first
ones, one of them is stored each `PASSED_S`, because storing every run would cost more than it
explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Verdict
from pathgauge.collector.core.evidence.evidence import overall
from pathgauge.collector.store.schema import name_of

Kept: TypeAlias = Literal["failed", "all", "none"]

PASSED_S = 30.0
"""The shortest time between two passed runs of a scenario that are stored, after the first ones."""
FAILED: tuple[Verdict, ...] = ("failed", "error")
"""The verdicts of runs that are kept as failures."""


class Passed(NamedTuple):
    """The evidence of the passed runs of a scenario."""

    number: int
    newest: float
    """Unix time of the newest, 0 without any."""


@dataclass(frozen=True, slots=True)
class EvidencePolicy:
    """Which evidence is kept, how much of it, and for how long."""

    keep: Kept = "failed"
    passed_per_scenario: int = 20
    max_bytes: int = 256 << 20
    retention_s: float = 7 * 86_400.0

    def keeps(self, evaluation: Evaluation) -> bool:
        """Whether the evaluation is kept whatever else there is."""
        verdict = overall(result.verdict for result in evaluation.results)
        return self.keep == "all" or verdict in FAILED

    def wants(self, passed: Passed, wall: float) -> bool:
        """Whether another passed run of a scenario is kept at this Unix time."""
        if passed.number < self.passed_per_scenario:
            return True
        is_due = not passed.newest <= wall < passed.newest + PASSED_S
        return self.passed_per_scenario > 0 and is_due


def scenario_of(evaluation: Evaluation) -> str:
    """The scenario under which evidence is stored."""
    return name_of(evaluation.scenario_id)

"""The result of `pathgauge lint`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.curation.grouping import Observed
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.linting.checks import findings
from pathgauge.collector.offline.linting.findings import Finding
from pathgauge.collector.offline.linting.mutation_table import MutationTable, mutation_table
from pathgauge.collector.offline.linting.observations import observed_turns
from pathgauge.scorers.types import Json


@dataclass(frozen=True, slots=True)
class Report:
    """Findings, and the table of mutations."""

    runs: int
    matched: int
    references: int
    findings: Sequence[Finding]
    mutations: MutationTable

    def violations(self, min_noticed: float | None) -> Iterator[str]:
        """Why a gate should fail, if only because nothing was checked."""
        if not self.references or not self.runs:
            missing = "run" if self.references else "reference"
            yield f"found no {missing}, so nothing was checked"
        problems = sum(finding.level == "problem" for finding in self.findings)
        if problems:
            yield f"problems found: {problems}"
        share = self.mutations.share
        if min_noticed is None:
            return
        if share is None:
            yield "no good run to spoil, so nothing says what criteria notice"
        elif share < min_noticed:
            yield f"criteria notice {share:.1%} of the mutations, expected {min_noticed:.1%}"

    def to_json(self) -> dict[str, Json]:
        """As JSON."""
        return {
            "runs": self.runs,
            "matched": self.matched,
            "references": self.references,
            "findings": [finding.to_json() for finding in self.findings],
            "mutations": {
                "runs": self.mutations.runs,
                "noticed": self.mutations.share,
                "criteria": list(self.mutations.criteria),
                "rows": [row.to_json() for row in self.mutations.rows],
            },
        }


def lint(
    observed: Sequence[Observed], references: ReferenceSet, evaluator: Evaluator, window: int
) -> Report:
    """Check the references against these runs. `window`: the runs whose mean a gauge shows."""
    turns = list(observed_turns(observed, references, evaluator))
    found = [one for turn in turns for one in findings(turn, len(observed), window)]
    found.sort(key=lambda one: (one.level != "problem", one.scenario_id, one.turn))
    return Report(
        len(observed),
        sum(len(turn.evaluations) for turn in turns),
        len(references),
        found,
        mutation_table(turns, evaluator),
    )

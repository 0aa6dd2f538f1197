"""The runs of one turn of a reference, scored with the criteria in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pathgauge.collector.core.curation.grouping import Observed
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.types import Reference, ReferenceTurn


@dataclass(frozen=True, slots=True)
class ObservedTurn:
    """A turn of a reference, and the evaluations of its runs."""

    reference: Reference
    index: int
    evaluations: Sequence[Evaluation]

    @property
    def turn(self) -> ReferenceTurn:
        """What is expected."""
        return self.reference.turns[self.index]

    @property
    def good(self) -> list[Evaluation]:
        """The runs that met all criteria that apply, and at least one."""
        return [
            one
            for one in self.evaluations
            if not one.failed and any(result.verdict == "passed" for result in one.results)
        ]


@dataclass(slots=True)
class _Runs:
    reference: Reference
    by_turn: dict[int, list[Evaluation]] = field(default_factory=dict)


def observed_turns(
    observed: Iterable[Observed], references: ReferenceSet, evaluator: Evaluator
) -> Iterator[ObservedTurn]:
    """All turns of all references, also those without runs."""
    runs = {reference.scenario_id: _Runs(reference) for reference in references}
    for one in observed:
        turn = one.invocation.turn if one.turn is None else one.turn
        match = references.match(one.invocation, turn)
        if match.reference is not None and match.turn_index is not None:
            evaluation = evaluator.evaluate(one.invocation, match)
            found = runs[match.reference.scenario_id].by_turn
            found.setdefault(match.turn_index, []).append(evaluation)
    for some in runs.values():
        for index in range(len(some.reference.turns)):
            yield ObservedTurn(some.reference, index, some.by_turn.get(index, ()))

"""What a run is that a collector has kept, to the learner."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.curation.kept import observed_in
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.evidence.evidence import evidence_of
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.types import Reference, ReferenceTurn

REFERENCES = ReferenceSet([Reference("trip", (ReferenceTurn(), ReferenceTurn()))])


@pytest.mark.parametrize(
    ("scenario", "turn", "matched"),
    [("trip", 0, True), ("trip", 2, True), ("trip", None, True), ("other", 0, False)],
)
def test_the_scenario_of_a_turn_that_its_reference_does_not_have_has_a_reference(
    scenario: str, turn: int | None, matched: bool
) -> None:
    actual = invocation(scenario_id=scenario)
    evaluation = Evaluator(()).evaluate(actual, REFERENCES.match(actual, turn))
    observed = observed_in(evidence_of(evaluation))
    assert observed is not None
    assert observed.matched is matched

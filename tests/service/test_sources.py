"""Where the API finds what the engine has in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from pathgauge.collector.config import Config
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.service.engine import Engine
from pathgauge.collector.service.sources import sources_of
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.scorers.types import Invocation


def test_a_process_that_became_the_gauge_knows_unknown_ids() -> None:
    process = SimpleNamespace(
        unknown_scenarios=UnknownScenarios(ReferenceSet()),
        inactive=lambda: ["standby"],
        **dict.fromkeys(("current_scores", "references", "evaluator", "drifts", "traffic")),
    )
    found = sources_of(Config(), cast(Engine, process), list)
    assert (found.is_standby(), found.unknown()) == (True, ([], 0))

    process.unknown_scenarios = UnknownScenarios(ReferenceSet())
    process.inactive = list
    invocation = Invocation("a" * 32, "b" * 16, "test", scenario_id="refnd")
    unmatched = Match(unmatched="unknown_scenario")
    process.unknown_scenarios.publish(Evaluation(invocation, unmatched, (), "idle"), 0.0)
    assert not found.is_standby()
    assert [one.scenario for one in found.unknown()[0]] == ["refnd"]

"""What scores are grouped by: the agent, the scenario and the tenant of an evaluation."""

from __future__ import annotations

from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import Evaluation


class Series(NamedTuple):
    """Agent, scenario and tenant of an evaluation. `""` means unknown, or the only tenant."""

    agent: str
    scenario: str
    tenant: str = ""


def series_of(evaluation: Evaluation) -> Series:
    """The invocation's agent, and the scenario of its reference or else of the invocation."""
    return Series(evaluation.invocation.agent or "", evaluation.scenario_id or "")

"""What windows need of stored evaluations to be the same again after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest revision of a stored evaluation, as far as windows need it."""

    key: EvaluationKey
    agent: str
    scenario: str
    """Agent and scenario as senders and references name them, or their label values; `""` means
    unknown.
    """
    reference_version: str | None
    """Version of the reference behind the scores; `None` without a reference."""
    at: float
    """When the first revision was published, in Unix seconds."""
    scores: Mapping[str, float]
    """Scores with a value, by metric."""
    agent_version: str | None = None
    judges: Mapping[str, str] = field(default_factory=dict)
    """The judge of each score that a model gave, by metric."""


Wants: TypeAlias = Callable[[str, str, str], bool]
"""Whether an evaluation of this tenant, agent and scenario may fit into a window."""
Past: TypeAlias = Callable[[Wants], Iterable[Recent]]
"""Reads the stored evaluations that fit into a window, the last recorded one first. A few others
may be among them.
"""

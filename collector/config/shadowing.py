"""The section `shadow`: criteria and references that run beside the active ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, Field

from pathgauge.collector.config.section import Section, default_if_empty
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.shadow import Shadow as ShadowScoring
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.judge_protocol import asks_model


class Shadow(Section):
    """What is compared with the active criteria and references, before it replaces them."""

    criteria: Annotated[dict[str, Any], BeforeValidator(default_if_empty)] = Field(
        default_factory=dict
    )
    """Without any, the active ones."""
    references: tuple[str, ...] = ()
    """Paths and patterns; without any, the active ones."""


def judges_of(evaluator: Evaluator) -> Iterator[str]:
    """The names of criteria that ask a model."""
    for criterion in chain(evaluator.criteria, *evaluator.overrides.values()):
        if asks_model(criterion.scorer):
            yield criterion.name


def shadow_of(
    evaluator: Evaluator, references: ReferenceSet, written: dict[str, Any]
) -> ShadowScoring:
    """What scores in shadow: `evaluator` without criteria that ask a model. `written` are the
    criteria as the configuration has them.
    """
    overrides = {name: _deterministic(own) for name, own in evaluator.overrides.items()}
    scoring = Evaluator(_deterministic(evaluator.criteria), overrides)
    versions = sorted((one.scenario_id, one.version or "") for one in references)
    scorers = sorted(f"{one.name} {one.scorer.version}" for one in scoring.criteria)
    parts = orjson.dumps([written, versions, scorers], default=str, option=orjson.OPT_SORT_KEYS)
    return ShadowScoring(scoring, references, hashlib.sha256(parts).hexdigest()[:12])


def _deterministic(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
    return tuple(one for one in criteria if not asks_model(one.scorer))

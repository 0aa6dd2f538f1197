"""The section `shadow`: criteria and references that run beside the active ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, Field

from pathgauge.collector.config.section import Section, default_if_empty
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.shadow import Shadow as ShadowScoring
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.session_protocol import scores_sessions


class Shadow(Section):
    """What is compared with the active criteria and references, before it replaces them."""

    criteria: Annotated[dict[str, Any], BeforeValidator(default_if_empty)] = Field(
        default_factory=dict
    )
    """Without any, the active ones."""
    references: tuple[str, ...] = ()
    """Paths and patterns; without any, the active ones."""


def left_out_of(evaluator: Evaluator) -> Iterator[str]:
    """The names of criteria that do not run in shadow: judges, and those of whole sessions."""
    for criterion in evaluator.every:
        if not _runs(criterion):
            yield criterion.name


def shadow_of(
    evaluator: Evaluator, references: ReferenceSet, written: dict[str, Any]
) -> ShadowScoring:
    """What scores in shadow: `evaluator` without the criteria that do not run there. `written` are
    the criteria as the configuration has them.
    """
    overrides = {name: _running(own) for name, own in evaluator.overrides.items()}
    scoring = Evaluator(_running(evaluator.criteria), overrides)
    versions = sorted((one.scenario_id, one.version or "") for one in references)
    scorers = sorted(f"{one.name} {one.scorer.version}" for one in scoring.criteria)
    parts = orjson.dumps([written, versions, scorers], default=str, option=orjson.OPT_SORT_KEYS)
    return ShadowScoring(scoring, references, hashlib.sha256(parts).hexdigest()[:12])


def _running(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
    return tuple(filter(_runs, criteria))


def _runs(criterion: Criterion) -> bool:
    return not asks_model(criterion.scorer) and not scores_sessions(criterion.scorer)

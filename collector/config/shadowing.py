"""The section `shadow`: criteria and references that run beside the active ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, Field, field_validator

from pathgauge.collector.config.judging import JudgeBudget
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
    budget: JudgeBudget | None = None
    """Of judges in shadow, beside that of the active ones; without it, none are asked."""

    @field_validator("budget")
    @classmethod
    def _is_limited(cls, budget: JudgeBudget | None) -> JudgeBudget | None:
        if budget is not None and set(budget.model_dump().values()) == {None}:
            raise ValueError("found no limit, expected at least one, such as {usd_per_day: 1}")
        return budget


def left_out_of(evaluator: Evaluator, *, judges: bool) -> Iterator[str]:
    """The names of criteria that do not run in shadow: those of whole sessions, and without
    `judges` also those that ask a model.
    """
    for criterion in evaluator.every:
        if not _runs(criterion, judges):
            yield criterion.name


def refusal(names: Iterable[str], evaluator: Evaluator) -> str:
    """Why criteria with these names cannot be in shadow, for the operator."""
    of_sessions = {one.name for one in evaluator.every if scores_sessions(one.scorer)}
    if found := [name for name in names if name in of_sessions]:
        return (
            f"found criteria that score sessions ({', '.join(found)}), expected none: they do not"
            " run in shadow"
        )
    return (
        f"found criteria that ask a model ({', '.join(names)}) and no budget, expected"
        " shadow.budget: they never spend what is in judge.budget"
    )


def shadow_of(
    evaluator: Evaluator, references: ReferenceSet, written: dict[str, Any], *, judges: bool
) -> ShadowScoring:
    """What scores in shadow: `evaluator` without the criteria that do not run there. `written` are
    the criteria as the configuration has them.
    """
    overrides = {name: _running(own, judges) for name, own in evaluator.overrides.items()}
    scoring = Evaluator(_running(evaluator.criteria, judges), overrides)
    versions = sorted((one.scenario_id, one.version or "") for one in references)
    scorers = sorted(f"{one.name} {one.scorer.version} {one.judge}" for one in scoring.criteria)
    parts = orjson.dumps([written, versions, scorers], default=str, option=orjson.OPT_SORT_KEYS)
    return ShadowScoring(scoring, references, hashlib.sha256(parts).hexdigest()[:12])


def judges_in(shadow: ShadowScoring | None) -> list[str]:
    """The names of the criteria in shadow that ask a model."""
    if shadow is None:
        return []
    return sorted({one.name for one in shadow.evaluator.every if asks_model(one.scorer)})


def _running(criteria: Iterable[Criterion], judges: bool) -> tuple[Criterion, ...]:
    return tuple(one for one in criteria if _runs(one, judges))


def _runs(criterion: Criterion, judges: bool) -> bool:
    is_judge = asks_model(criterion.scorer)
    return (judges or not is_judge) and not scores_sessions(criterion.scorer)

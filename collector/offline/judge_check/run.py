"""Runs checks: a configuration and a file of labelled examples come in, a `Check` of each judge and
what they cost go out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

from pathgauge.collector.config import Config, criteria
from pathgauge.collector.config.criteria.judges import named
from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    Problem,
    Problems,
    did_you_mean,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.offline.judge_check.check import Check, Checker
from pathgauge.collector.offline.judge_check.cost import Spent
from pathgauge.collector.offline.judge_check.examples import Example, labelled, read
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.client import Asker
from pathgauge.scorers.judges.model_client.settings import Settings


def run(config: Config, file: Path, only: str | None, injections: int) -> tuple[list[Check], Spent]:
    """Check all judges, or the one called `only`. Raises `ConfigError` with every mistake in the
    configuration and in the examples.
    """
    if config.judge is None:
        raise ConfigError(
            [config.problem(("judge",), "found no section, expected the model to ask")]
        )
    settings = config.judge.settings(config.folder)
    judges = _judges(config, settings)
    chosen = _chosen(judges, config, only)
    examples = read(file)
    problems = Problems()
    problems.found += _unknown(examples, [criterion.name for criterion in judges])
    plan: list[tuple[Criterion, tuple[Example, ...]]] = []
    for criterion in chosen:
        with problems:
            plan.append((criterion, labelled(examples, criterion)))
    problems.report()
    spent = Spent()
    return asyncio.run(_run(plan, settings, spent, config.judge.concurrency, injections)), spent


async def _run(
    plan: list[tuple[Criterion, tuple[Example, ...]]],
    settings: Settings,
    spent: Spent,
    concurrency: int,
    injections: int,
) -> list[Check]:
    asker = Asker(settings, spent)
    try:
        checker = Checker(asker, concurrency, injections)
        return [
            await checker.check(criterion, examples) for criterion, examples in plan if examples
        ]
    finally:
        await asker.aclose()


def _judges(config: Config, settings: Settings) -> list[Criterion]:
    built = criteria.build(config.criteria, criteria.Place(Document("", None), ("criteria",)))
    return [criterion for criterion in named(built, settings) if asks_model(criterion.scorer)]


def _chosen(judges: list[Criterion], config: Config, only: str | None) -> list[Criterion]:
    names = [criterion.name for criterion in judges]
    if only is not None and only not in names:
        expected = (
            "expected one that asks a model:"
            f" {', '.join(names) or 'there is none'}{did_you_mean(only, names)}"
        )
        raise ConfigError([Problem("", None, ("--criterion",), f"found {only!r}, {expected}")])
    if not judges:
        raise ConfigError(
            [config.problem(("criteria",), "found no criterion that asks a model, expected one")]
        )
    return [criterion for criterion in judges if only in (None, criterion.name)]


def _unknown(examples: Iterable[Example], names: list[str]) -> Iterator[Problem]:
    for example in examples:
        if example.criterion is not None and example.criterion not in names:
            expected = f"expected one of {', '.join(names)}{did_you_mean(example.criterion, names)}"
            yield example.problem("criterion", f"found {example.criterion!r}, {expected}")

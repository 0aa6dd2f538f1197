"""Checks the configured judges against labelled examples, of a file or those that they have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pathgauge.collector.config import Config, criteria
from pathgauge.collector.config.criteria.judges import repeated_samples, with_judge_labels
from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    Problem,
    Problems,
    did_you_mean,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.offline.judge_check.answered import answered
from pathgauge.collector.offline.judge_check.check import Check, Checker
from pathgauge.collector.offline.judge_check.cost import CheckCost
from pathgauge.collector.offline.judge_check.examples import Example, labelled, read
from pathgauge.collector.offline.judge_check.shipped import shipped
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.client import ModelClient
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.session_protocol import scores_sessions

_Plan = Sequence[tuple[Criterion, tuple[Example, ...]]]
"""The examples that each judge is asked about."""


def warnings(config: Config) -> Iterator[str]:
    """Settings of judges that are allowed, but probably not intended."""
    if config.judge is not None:
        yield from repeated_samples(_judges(config, config.judge.settings(config.folder)))


def run(
    config: Config,
    file: Path | None,
    only: str | None,
    injections: int,
    progress: Progress = unreported,
    *,
    feedback: bool = False,
) -> tuple[list[Check], CheckCost]:
    """Check all judges, or the one called `only`. Without a file, those with examples of their own
    are checked; with `feedback`, the runs that people have answered are the examples. Raises
    `ConfigError` with every problem in the configuration and in the examples.
    """
    if config.judge is None:
        text = "found no section, expected the model to ask"
        raise ConfigError([config.problem(("judge",), text)])
    settings = config.judge.settings(config.folder)
    judges = _judges(config, settings)
    chosen = _chosen(judges, config, only)
    if feedback:
        of_runs = _of_runs(chosen)
        names = [criterion.name for criterion in of_runs]
        others = [criterion.name for criterion in judges if criterion not in of_runs]
        plan = _labelled(answered(config, names, others), judges, of_runs)
    else:
        plan = _shipped(chosen) if file is None else _labelled(read(file), judges, chosen)
    cost = CheckCost()
    client = ModelClient(settings, cost)
    checker = Checker(client, config.judge.concurrency, injections, progress)
    return asyncio.run(_run(plan, checker, client)), cost


def _shipped(chosen: Iterable[Criterion]) -> _Plan:
    plan = [(criterion, shipped(criterion)) for criterion in chosen]
    if not any(examples for _, examples in plan):
        names = ", ".join(criterion.name for criterion, _ in plan)
        text = f"found none, expected a file: no labelled examples come with {names}"
        raise ConfigError([Problem("", None, ("EXAMPLES",), text)])
    return plan


def _labelled(
    examples: tuple[Example, ...], judges: Sequence[Criterion], chosen: Iterable[Criterion]
) -> _Plan:
    problems = Problems()
    problems.found += _unknown_criteria(examples, [criterion.name for criterion in judges])
    plan: list[tuple[Criterion, tuple[Example, ...]]] = []
    for criterion in chosen:
        with problems:
            plan.append((criterion, labelled(examples, criterion)))
    problems.report()
    return plan


async def _run(plan: _Plan, checker: Checker, client: ModelClient) -> list[Check]:
    try:
        return [
            await checker.check(criterion, examples) for criterion, examples in plan if examples
        ]
    finally:
        await client.aclose()


def _judges(config: Config, settings: Settings) -> list[Criterion]:
    built = criteria.build(config.criteria, criteria.Location(Document("", None), ("criteria",)))
    return [
        criterion
        for criterion in with_judge_labels(built, settings)
        if asks_model(criterion.scorer)
    ]


def _chosen(judges: list[Criterion], config: Config, only: str | None) -> list[Criterion]:
    names = [criterion.name for criterion in judges]
    if only is not None and only not in names:
        known = f"{', '.join(names) or 'there is none'}{did_you_mean(only, names)}"
        text = f"found {only!r}, expected a criterion that asks a model: {known}"
        raise ConfigError([Problem("", None, ("--criterion",), text)])
    if not judges:
        text = "found no criterion that asks a model, expected one"
        raise ConfigError([config.problem(("criteria",), text)])
    return [criterion for criterion in judges if only in (None, criterion.name)]


def _of_runs(judges: Iterable[Criterion]) -> list[Criterion]:
    """Those for which answers about runs are labels. Answers about sessions are not read."""
    found = [criterion for criterion in judges if not scores_sessions(criterion.scorer)]
    if not found:
        names = ", ".join(criterion.name for criterion in judges)
        text = (
            f"found no judge of single invocations, only of sessions: {names}; expected one: the"
            " evidence of an answered session has no turns"
        )
        raise ConfigError([Problem("", None, ("--feedback",), text)])
    return found


def _unknown_criteria(examples: Iterable[Example], names: list[str]) -> Iterator[Problem]:
    for example in examples:
        if example.criterion is not None and example.criterion not in names:
            expected = f"expected one of {', '.join(names)}{did_you_mean(example.criterion, names)}"
            yield example.problem("criterion", f"found {example.criterion!r}, {expected}")

"""Warnings about settings that are allowed, but probably not intended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain

from pathgauge.collector.config import Config
from pathgauge.collector.config.criteria import objectives
from pathgauge.collector.config.criteria.judges import repeated_samples
from pathgauge.collector.config.pricing import missing_prices
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.references.formats import Entry
from pathgauge.scorers.authoring.extras import extras_of
from pathgauge.scorers.judge_protocol import asks_model


def doubts(config: Config, evaluator: Evaluator, entries: Sequence[Entry]) -> Iterator[str]:
    """All warnings about the criteria. `entries`: the references."""
    every = [*evaluator.criteria, *chain.from_iterable(evaluator.overrides.values())]
    yield from missing_references(evaluator.criteria, entries)
    yield from _missing_judge(config, every)
    yield from _removed_attributes(config, every)
    yield from missing_prices(every)
    yield from repeated_samples(every)
    yield from _of_objectives(config, evaluator, entries)


def empty_file(config: Config) -> Iterator[str]:
    """A warning about a configuration file without keys."""
    if config.is_empty_file:
        text = (
            "found an empty file, so every key has its default; a small configuration is"
            " {references: [references/*.yaml], criteria: {tool_trajectory_f1: 0.8}}"
        )
        yield str(config.problem((), text))


def missing_references(common: Iterable[Criterion], references: Sized) -> Iterator[str]:
    """A warning about criteria that need references, if there are none."""
    names = [criterion.name for criterion in common if criterion.scorer.needs_reference]
    if names and not len(references):
        yield f"there are no references, which these criteria need: {', '.join(names)}"


def _missing_judge(config: Config, every: Iterable[Criterion]) -> Iterator[str]:
    names = dict.fromkeys(criterion.name for criterion in every if asks_model(criterion.scorer))
    if names and config.judge is None:
        yield (
            "no judge is configured, so these criteria that ask a model are not evaluated:"
            f" {', '.join(names)}"
        )


def _removed_attributes(config: Config, every: Iterable[Criterion]) -> Iterator[str]:
    redaction = config.redaction
    if redaction is None:
        return
    contents = (redaction.content, *(own.content for own in redaction.tenants.values()))
    if False not in contents:
        return
    names = dict.fromkeys(one.name for one in every if extras_of([one.scorer]).span_attributes)
    if names:
        yield (
            "redaction with content: false removes unknown attributes, so these criteria may not"
            f" find those that they look for: {', '.join(names)}"
        )


def _of_objectives(config: Config, evaluator: Evaluator, entries: Iterable[Entry]) -> Iterator[str]:
    for criterion in evaluator.criteria:
        for warning in objectives.warnings(criterion):
            yield str(config.problem(("criteria", criterion.name, "objective"), warning))
    for entry in entries:
        for criterion in evaluator.overrides.get(entry.reference.scenario_id, ()):
            if criterion.name in entry.reference.criteria:
                path = (*entry.path, "criteria", criterion.name, "objective")
                for warning in objectives.warnings(criterion):
                    yield str(entry.document.problem(path, warning))

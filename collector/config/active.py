"""What the service runs on: a `Config` comes in, the evaluator and the references that it names go
out.

`resolve` again when `fingerprint` has changed; when it raises, the last setup stays good.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from pathgauge.collector.config import (
    Config,
    criteria,
    criteria_of_file,
    load,
    reference_files,
)
from pathgauge.collector.config.criteria import Place, objectives
from pathgauge.collector.config.criteria.judges import named
from pathgauge.collector.config.reference_files import Fingerprint
from pathgauge.collector.core.documents import Document, Problem, Problems
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.references.formats import Entry
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.types import Json, Reference


@dataclass(frozen=True, slots=True)
class ActiveConfig:
    """All that depends on criteria and reference files."""

    evaluator: Evaluator
    references: ReferenceSet
    warnings: tuple[str, ...]
    """What is allowed, but probably not meant."""
    baseline_versions: Mapping[str, str]
    """What to compare the present version of an agent with, by agent."""
    fingerprint: Fingerprint
    """Of the reference files before they were read."""


def resolve(config: Config) -> ActiveConfig:
    """Build the scorers and read the references. Raises `ConfigError` with every problem."""
    loaded = reference_files.load(config.references, config.folder)
    common = criteria.build(config.criteria, Place(Document("", None), ("criteria",)))
    overrides: dict[str, tuple[Criterion, ...]] = {}
    problems = Problems()
    for entry in loaded.entries:
        with problems:
            if entry.reference.criteria:
                overrides[entry.reference.scenario_id] = _criteria_of(
                    entry, config.criteria, common
                )
    problems.report()
    if config.judge is not None:
        settings = config.judge.settings(config.folder)
        problems.found += _of_unknown_providers(
            config, settings, chain(common, *overrides.values())
        )
        problems.report()
        common = named(common, settings)
        overrides = {scenario: named(own, settings) for scenario, own in overrides.items()}
    evaluator = Evaluator(common, overrides)
    expected = (
        _expected(entry.reference, config.scenario.expected_interval) for entry in loaded.entries
    )
    references = ReferenceSet(expected, match_user_input=config.scenario.match_user_input)
    warnings = (
        *loaded.warnings,
        *_useless(common, loaded.entries),
        *_unjudged(config, evaluator),
        *_doubtful_objectives(config, evaluator, loaded.entries),
    )
    return ActiveConfig(
        evaluator, references, warnings, config.regression.baseline_versions, loaded.fingerprint
    )


GATE_CRITERIA: Mapping[str, Json] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""What ADK's own gate judges by where nobody says otherwise."""


def for_gate(
    path: Path | None, references: Iterable[str] = (), criteria_file: Path | None = None
) -> Config:
    """The configuration of an offline gate: that of a file, with references and criteria in place
    of its own. Raises `ConfigError`.
    """
    config = load(path)
    changed: dict[str, Json] = {}
    if criteria_file is not None:
        changed["criteria"] = criteria_of_file(criteria_file)
    elif path is None:
        changed["criteria"] = dict(GATE_CRITERIA)
    patterns = tuple(references)
    if patterns:
        changed["references"] = tuple(
            os.path.abspath(pattern) if path else pattern for pattern in patterns
        )
    return config.with_changes(changed)


def fingerprint(config: Config) -> Fingerprint:
    """Tells from that of a `ActiveConfig` whether the reference files have changed since; opens no file."""
    return reference_files.fingerprint(config.references, config.folder)


def _criteria_of(
    entry: Entry, written: Mapping[str, Json], common: Iterable[Criterion]
) -> tuple[Criterion, ...]:
    """The common criteria, those that the scenario changes built anew, in their order; mistakes are
    the scenario's.
    """
    own = entry.reference.criteria
    laid = criteria.lay_over(written, own)
    built = criteria.build(laid, Place(entry.document, (*entry.path, "criteria")), changed=own)
    kept = {
        criterion.name: criterion for criterion in common if own.get(criterion.name) is not False
    }
    return tuple((kept | {criterion.name: criterion for criterion in built}).values())


def _expected(reference: Reference, interval: float | None) -> Reference:
    """The reference with the interval of all scenarios where it has none of its own."""
    return (
        reference
        if reference.expected_interval is not None
        else replace(reference, expected_interval=interval)
    )


def _doubtful_objectives(
    config: Config, evaluator: Evaluator, entries: Iterable[Entry]
) -> Iterator[str]:
    for criterion in evaluator.criteria:
        for doubt in objectives.doubts(criterion):
            yield str(config.problem(("criteria", criterion.name, "objective"), doubt))
    for entry in entries:
        for criterion in evaluator.overrides.get(entry.reference.scenario_id, ()):
            if criterion.name in entry.reference.criteria:
                for doubt in objectives.doubts(criterion):
                    yield str(
                        entry.document.problem(
                            (*entry.path, "criteria", criterion.name, "objective"), doubt
                        )
                    )


def _unjudged(config: Config, evaluator: Evaluator) -> Iterator[str]:
    criteria = chain(evaluator.criteria, *evaluator.overrides.values())
    asking = dict.fromkeys(criterion.name for criterion in criteria if asks_model(criterion.scorer))
    if asking and config.judge is None:
        yield (
            "these criteria ask a model, and no judge is configured, so that they are not"
            f" evaluated: {', '.join(asking)}"
        )


def _of_unknown_providers(
    config: Config, settings: Settings, asking: Iterable[Criterion]
) -> Iterator[Problem]:
    for name, model in dict.fromkeys(
        (c.name, c.scorer.model) for c in asking if asks_model(c.scorer)
    ):
        provider = settings.resolve(model).provider
        if provider not in settings.providers:
            text = (
                f"found the model {model!r}, and no provider {provider}, expected one of"
                f" {', '.join(settings.providers)}"
            )
            yield config.problem(("criteria", name), text)


def _useless(common: Iterable[Criterion], entries: tuple[Entry, ...]) -> Iterator[str]:
    needy = [criterion.name for criterion in common if criterion.scorer.needs_reference]
    if needy and not entries:
        yield f"there are no references, which these criteria need: {', '.join(needy)}"

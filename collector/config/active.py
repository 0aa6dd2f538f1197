"""Builds what a `Config` names: the scorers of the criteria, and the references.

The service calls `resolve` again when `fingerprint` has changed. When `resolve` raises, the last
`ActiveConfig` stays active.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.config import (
    Config,
    criteria,
    criteria_of_file,
    load,
    reference_files,
)
from pathgauge.collector.config.criteria import Location
from pathgauge.collector.config.criteria.judges import unpriced, with_judge_labels
from pathgauge.collector.config.criteria.overrides import Overrides, overrides_of
from pathgauge.collector.config.doubts import doubts, empty_file
from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.config.judging import JudgeBudget
from pathgauge.collector.config.pricing import as_option
from pathgauge.collector.config.reference_files import Fingerprint, PatternProblem
from pathgauge.collector.config.shadowing import (
    Shadow as ShadowSection,
    left_out_of,
    refusal,
    shadow_of,
)
from pathgauge.collector.core.documents import (
    MAX_PROBLEMS_IN_TOTAL,
    ConfigError,
    Document,
    Problem,
    Problems,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.shadow import Shadow
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.references.formats import Entry, refuse_duplicates
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.types import Json, Reference

GATE_CRITERIA: Mapping[str, Json] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""The default criteria of ADK's own gate."""


@dataclass(frozen=True, slots=True)
class ActiveConfig:
    """Everything that depends on criteria and reference files."""

    evaluator: Evaluator
    references: ReferenceSet
    warnings: tuple[str, ...]
    """Settings that are allowed, but probably not intended."""
    drift: Drift | None
    """`None`: no drift is detected."""
    fingerprint: Fingerprint
    """Of the reference files, taken before they were read."""
    shadow: Shadow | None = None


class KnownReferences(NamedTuple):
    """References that were read before."""

    active: tuple[Reference, ...]
    shadow: tuple[Reference, ...]

    @staticmethod
    def of(setup: ActiveConfig) -> KnownReferences:
        """Those that are active."""
        shadow = () if setup.shadow is None else setup.shadow.references
        return KnownReferences(tuple(setup.references), tuple(shadow))


def resolve(
    config: Config,
    more_references: Iterable[Reference] = (),
    known: KnownReferences | None = None,
) -> ActiveConfig:
    """Build the scorers and read the references. Raises `ConfigError` with every problem.

    `more_references` are added to those of the files. `known` take the place of the files, which
    may be invalid by now.
    """
    patterns = config.references
    if known is not None:
        patterns, more_references = (), known.active
    loaded = reference_files.load_valid(patterns, config.folder, _pattern_problem(config))
    problems = Problems(MAX_PROBLEMS_IN_TOTAL)
    problems.add(loaded.problems)
    common = criteria.build(
        config.criteria,
        Location(Document("", None), ("criteria",)),
        prices=as_option(config.prices),
    )
    added = [Entry(one, Document(one.source, None), ()) for one in more_references]
    entries = (*loaded.entries, *added)
    if added:
        with problems:
            refuse_duplicates(entries)
    overrides: Overrides = {}
    with problems:
        overrides = overrides_of(config, entries, common)
    settings = None
    if config.judge is not None:
        settings = config.judge.settings(config.folder)
        used = [*chain(common, *overrides.values())]
        problems.add(_unknown_providers(config, settings, used))
        problems.add(
            config.problem(("judge", "budget"), text)
            for text in unpriced(used, config.judge.budget, settings)
        )
    problems.add(_never_scored(config, common, overrides))
    problems.report()
    if settings is not None:
        common = with_judge_labels(common, settings)
        overrides = {
            scenario: with_judge_labels(own, settings) for scenario, own in overrides.items()
        }
    evaluator = Evaluator(common, overrides)
    interval = config.scenario.expected_interval
    references = ReferenceSet(
        (_with_interval(entry.reference, interval) for entry in entries),
        match_user_input=config.scenario.match_user_input,
    )
    warnings = (
        *empty_file(config),
        *loaded.warnings,
        *doubts(config, evaluator, entries),
    )
    active = ActiveConfig(
        evaluator,
        references,
        warnings,
        config.drift,
        loaded.fingerprint,
    )
    return active if config.shadow is None else _with_shadow(active, config, config.shadow, known)


def _with_shadow(
    active: ActiveConfig, config: Config, section: ShadowSection, known: KnownReferences | None
) -> ActiveConfig:
    """With the criteria and references in shadow. Raises `ConfigError`."""
    shadowed = None if known is None else KnownReferences(known.shadow, ())
    other = _resolve_in_shadow(config, section, shadowed)
    judges = section.budget is not None
    left_out = list(dict.fromkeys(left_out_of(other.evaluator, judges=judges)))
    if section.criteria and left_out:
        text = refusal(left_out, other.evaluator)
        raise ConfigError([config.problem(("shadow", "criteria"), text)])
    warnings = [f"shadow: {one}" for one in other.warnings if one not in active.warnings]
    if left_out:
        needs = "" if judges else "judges (shadow.budget would let them run) and "
        warnings.append(f"shadow leaves out {needs}criteria of sessions: {', '.join(left_out)}")
    written = section.criteria or config.criteria
    shadow = shadow_of(other.evaluator, other.references, written, judges=judges)
    _check_prices(config, section, shadow)
    return replace(
        active,
        warnings=(*active.warnings, *warnings),
        fingerprint=tuple(sorted({*active.fingerprint, *other.fingerprint})),
        shadow=shadow,
    )


def _resolve_in_shadow(
    config: Config, section: ShadowSection, known: KnownReferences | None
) -> ActiveConfig:
    """The configuration with what the section replaces. Raises `ConfigError`."""
    changes: dict[str, Json] = {"shadow": None}
    if section.criteria:
        changes["criteria"] = section.criteria
    if section.references:
        changes["references"] = section.references
    if len(changes) == 1:
        text = "found neither criteria nor references, expected those to compare"
        raise ConfigError([config.problem(("shadow",), text)])
    if config.judge is not None:  # they spend from a budget of their own
        changes["judge"] = config.judge.model_copy(update={"budget": JudgeBudget()})
    try:
        return resolve(config.with_changes(changes), known=known)
    except ConfigError as error:
        raise ConfigError(
            [config.problem(("shadow",), str(problem)) for problem in error.problems]
        ) from error


def _check_prices(config: Config, section: ShadowSection, shadow: Shadow) -> None:
    """Raise `ConfigError` if a budget in US dollars cannot be kept."""
    if config.judge is None:
        return
    settings = config.judge.settings(config.folder)
    texts = unpriced(shadow.evaluator.every, section.budget, settings)
    if texts:
        raise ConfigError([config.problem(("shadow", "budget"), text) for text in texts])


def for_gate(
    path: Path | None, references: Iterable[str] = (), criteria_file: Path | None = None
) -> Config:
    """The configuration of an offline gate: that of a file, with its references and criteria
    replaced by the given ones. Raises `ConfigError`.
    """
    config = load(path)
    changes: dict[str, Json] = {}
    if criteria_file is not None:
        changes["criteria"] = criteria_of_file(criteria_file)
    elif path is None:
        changes["criteria"] = dict(GATE_CRITERIA)
    patterns = tuple(references)
    if path is not None:  # patterns of the command line are relative to the working directory
        here = os.getcwd()
        patterns = tuple(os.path.normpath(reference_files.below(here, one)) for one in patterns)
    if patterns:
        changes["references"] = patterns
    return config.with_changes(changes)


def fingerprint(config: Config) -> Fingerprint:
    """The present fingerprint of the reference files. It differs from that of an `ActiveConfig`
    when they have changed since. No file is opened.
    """
    shadow = () if config.shadow is None else config.shadow.references
    return reference_files.fingerprint((*config.references, *shadow), config.folder)


def _with_interval(reference: Reference, interval: float | None) -> Reference:
    """The reference with the common expected interval, unless it has its own."""
    if reference.expected_interval is not None:
        return reference
    return replace(reference, expected_interval=interval)


def _pattern_problem(config: Config) -> PatternProblem | None:
    """Locates problems of patterns in the configuration file, if they are written there."""
    if not config.is_written("references"):
        return None
    return lambda index, text: config.problem(("references", index), text)


def _never_scored(
    config: Config, common: Iterable[Criterion], overrides: Overrides
) -> Iterator[Problem]:
    """Criteria that lack an option without which there is no score, in every scenario."""
    given = {
        criterion.name
        for own in overrides.values()
        for criterion in own
        if not _missing_option(criterion)
    }
    for criterion in common:
        missing = _missing_option(criterion)
        if missing and criterion.name not in given:
            text = f"found no {missing}, without which there is never a score"
            yield config.problem(("criteria", criterion.name), text)


def _missing_option(criterion: Criterion) -> str:
    return getattr(criterion.scorer, "missing_option", "")


def _unknown_providers(
    config: Config, settings: Settings, used: Iterable[Criterion]
) -> Iterator[Problem]:
    models = {(c.name, c.scorer.model): None for c in used if asks_model(c.scorer)}
    for name, model in models:
        provider = settings.resolve(model).provider
        if provider not in settings.providers:
            text = (
                f"found the model {model!r} of the unknown provider {provider}, expected one of"
                f" {', '.join(settings.providers)}"
            )
            yield config.problem(("criteria", name), text)

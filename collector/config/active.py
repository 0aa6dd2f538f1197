"""Builds what a `Config` names: the scorers of the criteria, and the references.

The service calls `resolve` again when `fingerprint` has changed. When `resolve` raises, the last
`ActiveConfig` stays active.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sized
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
from pathgauge.collector.config.criteria import Location, objectives
from pathgauge.collector.config.criteria.judges import repeated_samples, with_judge_labels
from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.config.pricing import as_option, missing_prices
from pathgauge.collector.config.reference_files import Fingerprint, PatternProblem
from pathgauge.collector.config.shadowing import (
    Shadow as ShadowSection,
    left_out_of,
    refusal,
    shadow_of,
    unpriced,
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
from pathgauge.scorers.authoring.extras import extras_of
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.types import Json, Reference

_Overrides = dict[str, tuple[Criterion, ...]]
"""The criteria of scenarios that override the common ones."""

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


def resolve(config: Config, more_references: Iterable[Reference] = ()) -> ActiveConfig:
    """Build the scorers and read the references. Raises `ConfigError` with every problem.

    `more_references` are added to those of the files.
    """
    loaded = reference_files.load_valid(config.references, config.folder, _pattern_problem(config))
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
    overrides: _Overrides = {}
    with problems:
        overrides = _overrides(config, entries, common)
    settings = config.judge.settings(config.folder) if config.judge is not None else None
    if settings is not None:
        problems.add(_unknown_providers(config, settings, chain(common, *overrides.values())))
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
        *_empty_file(config),
        *loaded.warnings,
        *missing_references(common, entries),
        *_missing_judge(config, evaluator),
        *_removed_attributes(config, evaluator),
        *missing_prices(chain(evaluator.criteria, *evaluator.overrides.values())),
        *repeated_samples(chain(evaluator.criteria, *evaluator.overrides.values())),
        *_objective_warnings(config, evaluator, entries),
    )
    active = ActiveConfig(
        evaluator,
        references,
        warnings,
        config.drift,
        loaded.fingerprint,
    )
    return active if config.shadow is None else _with_shadow(active, config, config.shadow)


def _with_shadow(active: ActiveConfig, config: Config, section: ShadowSection) -> ActiveConfig:
    """With the criteria and references in shadow. Raises `ConfigError`."""
    changes: dict[str, Json] = {"shadow": None}
    if section.criteria:
        changes["criteria"] = section.criteria
    if section.references:
        changes["references"] = section.references
    if len(changes) == 1:
        text = "found neither criteria nor references, expected those to compare"
        raise ConfigError([config.problem(("shadow",), text)])
    try:
        other = resolve(config.with_changes(changes))
    except ConfigError as error:
        raise ConfigError(
            [config.problem(("shadow",), str(problem)) for problem in error.problems]
        ) from error
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
    if config.judge is not None:
        settings = config.judge.settings(config.folder)
        for model in unpriced(shadow, section.budget, settings):
            text = (
                f"found a budget in US dollars and no price of {model}, expected one under"
                " judge.prices"
            )
            raise ConfigError([config.problem(("shadow", "budget"), text)])
    return replace(
        active,
        warnings=(*active.warnings, *warnings),
        fingerprint=tuple(sorted({*active.fingerprint, *other.fingerprint})),
        shadow=shadow,
    )


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


def _overrides(config: Config, entries: Iterable[Entry], common: Iterable[Criterion]) -> _Overrides:
    found: _Overrides = {}
    problems = Problems()
    for entry in entries:
        with problems:
            if entry.reference.criteria:
                own = _criteria_of(entry, config, common)
                found[entry.reference.scenario_id] = own
    problems.report()
    return found


def _criteria_of(
    entry: Entry, config: Config, common: Iterable[Criterion]
) -> tuple[Criterion, ...]:
    """The common criteria in their order, with those that the scenario overrides built again.
    Problems are located in the scenario.
    """
    own = entry.reference.criteria
    merged = criteria.merge(config.criteria, own)
    location = Location(entry.document, (*entry.path, "criteria"))
    built = criteria.build(merged, location, changed=own, prices=as_option(config.prices))
    by_name = {
        criterion.name: criterion for criterion in common if own.get(criterion.name) is not False
    }
    rebuilt = {criterion.name: criterion for criterion in built}
    _refuse_own_aggregates(own, (by_name, rebuilt), location)
    return tuple((by_name | rebuilt).values())


def _refuse_own_aggregates(
    own: Iterable[str], criteria_by_name: Iterable[Mapping[str, Criterion]], location: Location
) -> None:
    """A criterion over several scenarios is the same in all of them."""
    problems = Problems()
    overridden = [by_name[name] for name in own for by_name in criteria_by_name if name in by_name]
    for criterion in overridden:
        if criterion.aggregation is not None and criterion.aggregation.over != "scenario":
            text = (
                f"found an override of a criterion with over: {criterion.aggregation.over},"
                " expected none, or false to leave this scenario out"
            )
            problems.found.append(location.problem((criterion.name,), text, of_key=True))
    problems.found = list(dict.fromkeys(problems.found))
    problems.report()


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


def _empty_file(config: Config) -> Iterator[str]:
    if config.is_empty_file:
        text = (
            "found an empty file, so every key has its default; a small configuration is"
            " {references: [references/*.yaml], criteria: {tool_trajectory_f1: 0.8}}"
        )
        yield str(config.problem((), text))


def _never_scored(
    config: Config, common: Iterable[Criterion], overrides: _Overrides
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


def missing_references(common: Iterable[Criterion], references: Sized) -> Iterator[str]:
    """A warning about criteria that need references, if there are none."""
    names = [criterion.name for criterion in common if criterion.scorer.needs_reference]
    if names and not len(references):
        yield f"there are no references, which these criteria need: {', '.join(names)}"


def _missing_judge(config: Config, evaluator: Evaluator) -> Iterator[str]:
    every = chain(evaluator.criteria, *evaluator.overrides.values())
    names = dict.fromkeys(criterion.name for criterion in every if asks_model(criterion.scorer))
    if names and config.judge is None:
        yield (
            "no judge is configured, so these criteria that ask a model are not evaluated:"
            f" {', '.join(names)}"
        )


def _removed_attributes(config: Config, evaluator: Evaluator) -> Iterator[str]:
    redaction = config.redaction
    if redaction is None:
        return
    contents = (redaction.content, *(own.content for own in redaction.tenants.values()))
    if False not in contents:
        return
    every = chain(evaluator.criteria, *evaluator.overrides.values())
    names = dict.fromkeys(one.name for one in every if extras_of([one.scorer]).span_attributes)
    if names:
        yield (
            "redaction with content: false removes unknown attributes, so these criteria may not"
            f" find those that they look for: {', '.join(names)}"
        )


def _objective_warnings(
    config: Config, evaluator: Evaluator, entries: Iterable[Entry]
) -> Iterator[str]:
    for criterion in evaluator.criteria:
        for warning in objectives.warnings(criterion):
            yield str(config.problem(("criteria", criterion.name, "objective"), warning))
    for entry in entries:
        for criterion in evaluator.overrides.get(entry.reference.scenario_id, ()):
            if criterion.name in entry.reference.criteria:
                path = (*entry.path, "criteria", criterion.name, "objective")
                for warning in objectives.warnings(criterion):
                    yield str(entry.document.problem(path, warning))

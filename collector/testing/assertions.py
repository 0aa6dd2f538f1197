"""`assert_passes`: the gate of `pathgauge score` as an assertion.

It is stricter in one point. A gate over many traces reports an invocation whose scenario has no
reference, and leaves one without a conversation out of sessions; a test that compares nothing would
be useless, so here it fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pathgauge.collector.cli.output.details import failures
from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, for_gate, resolve
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.references import ReferenceSet, Unmatched
from pathgauge.collector.offline.coverage import references_of, unmatched, without_session
from pathgauge.collector.offline.gate import Requirements, judge
from pathgauge.collector.offline.replay import Replayed
from pathgauge.collector.offline.tables.scoring import JudgeAll
from pathgauge.collector.offline.trace_files import TraceFiles, read_path
from pathgauge.collector.testing.failure_text import failure_text
from pathgauge.collector.testing.read import PathLike, read_invocations
from pathgauge.collector.testing.scoring import as_runs_of, score_invocations
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, Json, Reference

Run = PathLike | Invocation | Iterable[Invocation]
References = PathLike | Reference | Iterable[PathLike | Reference]
Criteria = Mapping[str, Json] | PathLike

_WITHOUT_REFERENCE: frozenset[Unmatched | None] = frozenset({"no_scenario_id", "unknown_scenario"})

_EMPTY = "found no invocation in the run"


class Recorded(NamedTuple):
    """Telemetry that is not read yet, and the name of its source."""

    path: Path
    files: TraceFiles


class _Read(NamedTuple):
    invocations: list[Invocation]
    references: ReferenceSet
    notes: tuple[str, ...]
    incomplete: tuple[str, ...] = ()


def assert_passes(
    run: Run,
    references: References = (),
    criteria: Criteria | None = None,
    *,
    min_coverage: float = 1.0,
) -> None:
    """Raise `AssertionError` if the gate of `pathgauge score` does not pass. Its text has the
    reasons, and for each failed invocation the scores and both trajectories.

    `run`: a trace file or a folder of them, or invocations.
    `references`: files, patterns or `Reference`s. With a single `Reference`, invocations without a
    scenario id are those of its scenario.
    `criteria`: as in a configuration; or the path of a configuration, whose references are used if
    none are given, or of an ADK `test_config.json`. Default: those of ADK,
    `tool_trajectory_avg_score` 1.0 and `response_match_score` 0.8.
    `min_coverage`: the share of the invocations that each criterion must score.

    Raises `ValueError` for files, references and criteria with mistakes, and `OSError`.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    text = why_not(run, references, criteria, min_coverage)
    if text is not None:
        raise AssertionError(text)


def why_not(
    run: Run | Recorded,
    references: References,
    criteria: Criteria | None,
    min_coverage: float,
) -> str | None:
    """Why the gate does not pass; `None` if it does."""
    objects, patterns = _split(references)
    settings = _settings(criteria, patterns)
    if objects and not patterns:
        settings = settings.with_changes({"references": []})  # as patterns do
    active = resolve(settings, objects)
    read = _read(run, active, settings)
    invocations = read.invocations
    if isinstance(references, Reference):
        invocations = list(as_runs_of(references, invocations))
    with _judges(settings, active) as judge_all:
        scored = score_invocations(invocations, active.evaluator, read.references, judge_all)
    scored = replace(scored, incomplete=read.incomplete)
    gate = judge([scored], active.evaluator, read.references, Requirements(min_coverage))
    reasons = [
        *_without_reference(scored, active.evaluator, read.references),
        *filter(None, [without_session([scored], active.evaluator)]),
        *gate.reasons,
    ]
    if not reasons:
        return None
    return failure_text(reasons, (*read.notes, *active.warnings), failures([scored], gate))


def _split(references: References) -> tuple[list[Reference], list[str]]:
    """The objects, and the paths and patterns."""
    if isinstance(references, str | os.PathLike | Reference):
        references = (references,)
    objects: list[Reference] = []
    patterns: list[str] = []
    for one in references:
        if isinstance(one, Reference):
            objects.append(one)
        else:
            patterns.append(os.fspath(one))
    return objects, patterns


def _settings(criteria: Criteria | None, patterns: list[str]) -> Config:
    if criteria is None:
        return for_gate(None, patterns)
    if isinstance(criteria, str | os.PathLike):
        path = Path(criteria)
        if path.suffix == ".json":
            return for_gate(None, patterns, path)
        return for_gate(path, patterns)
    return for_gate(None, patterns).with_changes({"criteria": dict(criteria)})


def _read(run: Run | Recorded, active: ActiveConfig, settings: Config) -> _Read:
    """The invocations, with what the criteria need of them."""
    if isinstance(run, Invocation):
        return _Read([run], active.references, ())
    if isinstance(run, str | os.PathLike):
        run = Recorded(Path(run), read_path(Path(run)))
    if not isinstance(run, Recorded):
        invocations = list(run)
        return _Read(invocations, active.references, () if invocations else (_EMPTY,))
    extras, keys = active.evaluator.extras, settings.scenario.keys
    read = read_invocations(run.files, run.path, extras, active.references, keys)
    references = active.references
    own = references_of([read]) if run.files.tables else ()
    if own:
        references = ReferenceSet([*references, *own], match_user_input=True)
    invocations = [evaluation.invocation for evaluation in read.evaluations]
    notes = tuple(note for note in read.notes if note not in read.incomplete)
    return _Read(invocations, references, notes, read.incomplete)


def _judges(settings: Config, active: ActiveConfig) -> AbstractContextManager[JudgeAll | None]:
    if settings.judge is None:
        return nullcontext()
    from pathgauge.collector.offline.judges import judges_of

    return judges_of(settings.judge, settings.folder, active)


def _without_reference(
    scored: Replayed, evaluator: Evaluator, references: ReferenceSet
) -> list[str]:
    """A line for each reason why invocations have no reference, if a criterion needs one."""
    needed = [
        criterion.name
        for criterion in evaluator.criteria
        if criterion.threshold is not None and criterion.scorer.needs_reference
    ]
    if not needed:
        return []
    lost = replace(scored, evaluations=tuple(filter(_has_no_reference, scored.evaluations)))
    return [
        f"No reference for {count} of {_invocations(scored)} ({reason}), needed by"
        f" {', '.join(needed)}."
        for reason, count in unmatched([lost], references).items()
    ]


def _invocations(scored: Replayed) -> str:
    found = sum(one.session is None for one in scored.evaluations)
    return counted(found, "invocation")


def _has_no_reference(evaluation: Evaluation) -> bool:
    return evaluation.match.unmatched in _WITHOUT_REFERENCE

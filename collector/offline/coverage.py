"""How much of what was run was scored, and which scenarios were not run at all.

A mean says nothing about the invocations that it leaves out: without content in the telemetry, one
answer of six may have a score. So a gate also asks for scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from pathgauge.collector.core.documents import ConfigError, Problem, did_you_mean
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    Evaluator,
    Result,
)
from pathgauge.collector.core.references import Unmatched
from pathgauge.collector.core.references.closest_ids import ClosestIds
from pathgauge.collector.core.sessions.session import conversation_of
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.session_protocol import scores_sessions
from pathgauge.scorers.types import Reason, Reference

ALL = "all"
"""The pattern for every scenario that has a reference."""

_DOES_NOT_APPLY: frozenset[Reason | None] = frozenset(
    {"no_reference", "not_applicable", "undefined", "not_sampled"}
)
"""Reasons of scores that nobody can expect."""
_LACKS_REFERENCE: frozenset[Unmatched | None] = frozenset(
    {"no_conversation_id", "scenario_conflict"}
)
"""Why an invocation of a scenario is not compared with its reference, though it should be. An
unexpected turn is not among them: it counts as the worst value.
"""
TOO_FEW_RUNS = "too_few_runs"
"""The scenario has fewer runs than pass@k or pass^k needs."""
NO_WORST_VALUE = "no_worst_value"
"""Turns are missing or unexpected, and the scorer has no worst value that they could count as."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many invocations one criterion scored, of those that it applies to."""

    criterion: str
    invocations: int
    scored: int
    unscored: Mapping[str, int] = field(default_factory=dict)
    """Invocations without a score, by reason; `error`: the scorer failed."""

    @property
    def share(self) -> float:
        """The share of the invocations that have a score."""
        return self.scored / self.invocations

    def meets(self, min_coverage: float) -> bool:
        """Whether the share is high enough."""
        return self.share >= min_coverage - _ROUNDING

    def __str__(self) -> str:
        """For instance `f1 scored 1 of 6 invocations (5 response_not_recorded)`."""
        text = f"{self.criterion} scored {self.scored} of {counted(self.invocations, 'invocation')}"
        return f"{text} ({counts(self.unscored)})" if self.unscored else text


def coverage(
    replayed: Iterable[Replayed], evaluator: Evaluator, too_few_runs: Mapping[str, int]
) -> tuple[Coverage, ...]:
    """The coverage of each criterion with a threshold that applies to any invocation.
    `too_few_runs`: how many scores of a criterion do not count, because their scenario was not run
    often enough.
    """
    scored: Counter[str] = Counter()
    unscored: dict[str, Counter[str]] = {}
    for one in replayed:
        for evaluation in one.evaluations:
            for name, reason in _outcomes(evaluation, evaluator):
                reasons = unscored.setdefault(name, Counter())
                if reason is None:
                    scored[name] += 1
                else:
                    reasons[reason] += 1
        for name, absent in _without_worst_value(one.conversations):
            unscored.setdefault(name, Counter())[NO_WORST_VALUE] += absent
    for name, found in too_few_runs.items():
        scored[name] -= found
        unscored[name][TOO_FEW_RUNS] += found
    return tuple(
        Coverage(name, scored[name] + reasons.total(), scored[name], dict(reasons))
        for name, reasons in sorted(unscored.items())
    )


def unscored_reason(result: Result) -> str | None:
    """Why a criterion that applies has no score; `None`: it has one, or does not apply."""
    if result.verdict == "error":
        return "error"
    if result.score.value is not None or result.score.reason in _DOES_NOT_APPLY:
        return None
    return result.score.reason


def counts(numbers: Mapping[str, int]) -> str:
    """For instance `5 response_not_recorded, 1 error`, the highest number first."""
    return ", ".join(f"{count} {name}" for name, count in Counter(numbers).most_common())


def not_run(replayed: Iterable[Replayed], references: Iterable[Reference]) -> tuple[str, ...]:
    """Scenarios that have a reference but no invocation. An agent that crashes early leaves no
    trace that could fail.
    """
    run: set[str | None] = set()
    for one in replayed:
        for evaluation in one.evaluations:
            run.add(evaluation.invocation.scenario_id)
            if evaluation.match.reference is not None:
                run.add(evaluation.match.reference.scenario_id)
    return tuple(
        reference.scenario_id for reference in references if reference.scenario_id not in run
    )


def references_of(replayed: Iterable[Replayed]) -> tuple[Reference, ...]:
    """The references that invocations were compared with, by scenario id."""
    found = {
        evaluation.match.reference.scenario_id: evaluation.match.reference
        for one in replayed
        for evaluation in one.evaluations
        if evaluation.match.reference is not None
    }
    return tuple(found.values())


def unmatched(replayed: Iterable[Replayed], references: Iterable[Reference] = ()) -> dict[str, int]:
    """Why invocations have no reference turn, with their number, the highest number first. An
    unknown scenario id is named with the known ids most like it.
    """
    known = ClosestIds(reference.scenario_id for reference in references)
    reasons = Counter(
        _unmatched_reason(evaluation, known)
        for one in replayed
        for evaluation in one.evaluations
        if evaluation.match.unmatched and evaluation.session is None
    )
    return dict(reasons.most_common())


def _unmatched_reason(evaluation: Evaluation, known: ClosestIds) -> str:
    reason = (evaluation.match.unmatched or "").replace("_", " ")
    scenario = evaluation.invocation.scenario_id
    if not scenario:
        return reason
    if evaluation.match.unmatched != "unknown_scenario":
        return f"{reason} in scenario {scenario!r}"
    closest = ", ".join(map(repr, known.of(scenario)))
    return f"{reason} {scenario!r}" + (f" (known: {closest})" if closest else "")


def without_session(replayed: Iterable[Replayed], evaluator: Evaluator) -> str:
    """Invocations that belong to no session, for lack of a conversation id, and the criteria with a
    threshold that leave them out; empty if there are none.
    """
    left_out = dict.fromkeys(
        criterion.name
        for criterion in evaluator.every
        if criterion.threshold is not None and scores_sessions(criterion.scorer)
    )
    if not left_out:
        return ""
    invocations = [
        evaluation.invocation
        for one in replayed
        for evaluation in one.evaluations
        if evaluation.session is None
    ]
    lost = sum(conversation_of(one) is None for one in invocations)
    found = f"{lost} of {counted(len(invocations), 'invocation')}"
    return f"No conversation id of {found}, needed by {', '.join(left_out)}." if lost else ""


def required_scenarios(
    references: Iterable[Reference], patterns: Sequence[str] | None
) -> frozenset[str]:
    """The scenarios that match any pattern; without patterns, those that their reference marks.

    Raises `ConfigError` for a pattern that matches none, since a gate would silently not ask for
    what was meant.
    """
    references = list(references)
    if patterns is None:
        return frozenset(one.scenario_id for one in references if one.required)
    names = [reference.scenario_id for reference in references]
    problems = [
        Problem("", None, ("--require",), _matches_none(pattern, names))
        for pattern in patterns
        if not any(_is_required(name, pattern) for name in names)
    ]
    if problems:
        raise ConfigError(problems)
    return frozenset(
        name for name in names if any(_is_required(name, pattern) for pattern in patterns)
    )


def _is_required(name: str, pattern: str) -> bool:
    # An id may have brackets, such as `refund[eur]`.
    return pattern in (ALL, name) or fnmatchcase(name, pattern)


def _matches_none(pattern: str, names: Sequence[str]) -> str:
    if pattern == ALL:
        return f"found {ALL!r} and no reference, expected references"
    return (
        f"found {pattern!r}, expected {ALL}, or a pattern that matches a scenario of the"
        f" references{did_you_mean(pattern, names)}"
    )


def _without_worst_value(conversations: Iterable[ConversationResult]) -> Iterator[tuple[str, int]]:
    """Each criterion with a threshold that cannot count missing and unexpected turns, and their
    number.
    """
    for conversation in conversations:
        for score in conversation.scores:
            if score.value is None and score.criterion.threshold is not None:
                yield score.criterion.name, conversation.missing + conversation.unexpected


def _outcomes(evaluation: Evaluation, evaluator: Evaluator) -> Iterator[tuple[str, str | None]]:
    """Each criterion that has a threshold and applies, and why it has no score, if it has none.
    Repeated runs are those of a scenario, so such criteria apply to no other invocation.
    """
    has_reference = evaluation.match.reference is not None
    for result in evaluation.results:
        criterion = result.criterion
        if criterion.threshold is None or (_is_of_runs(criterion) and not has_reference):
            continue
        reason = unscored_reason(result)
        if reason is not None or result.score.value is not None:
            yield criterion.name, reason
    unmatched = evaluation.match.unmatched
    if unmatched in _LACKS_REFERENCE:
        for criterion in _criteria_of(evaluation, evaluator):
            needs_scenario = criterion.scorer.needs_reference or _is_of_runs(criterion)
            if criterion.threshold is not None and needs_scenario:
                yield criterion.name, unmatched


def _is_of_runs(criterion: Criterion) -> bool:
    return criterion.aggregation is not None and criterion.aggregation.of_runs


def _criteria_of(evaluation: Evaluation, evaluator: Evaluator) -> tuple[Criterion, ...]:
    scenario = evaluation.invocation.scenario_id or ""
    criteria = evaluator.overrides.get(scenario, evaluator.criteria)
    is_session = evaluation.session is not None
    return tuple(one for one in criteria if scores_sessions(one.scorer) is is_session)

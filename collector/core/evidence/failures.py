"""Assigns one category and one signature to an invocation that failed.

An alert leads to two questions: what kind of failure is it, and which runs failed in the same way?
The invocation and the tool calls are asked first, because they show causes; the kinds of the failed
criteria only show effects. `docs/failures.md` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Result
from pathgauge.collector.core.evidence.categories import (
    CATEGORIES,
    PRECEDENCE,
    Category,
    category_of,
)
from pathgauge.collector.core.evidence.deviations import Deviation, deviation
from pathgauge.collector.core.evidence.failure import Failure
from pathgauge.collector.core.evidence.misses import misses_of
from pathgauge.collector.core.evidence.signatures import short_name, signature
from pathgauge.scorers.composite.agent_view import OfAgent, own_view, subtree_view
from pathgauge.scorers.composite.composite import Composite
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.tool_use.errors import ErrorRecovery, ToolErrorRate
from pathgauge.scorers.tool_use.loops import (
    RedundantCalls,
    ToolLoops,
    equal_calls,
    most_repeated,
)
from pathgauge.scorers.types import Invocation, Json, Scorer

__all__ = ["CATEGORIES", "Category", "Failure", "failure_of", "with_failure"]

_MIN_SURPLUS = 2
"""Unexpected repetitions of a call make a loop; a single one may be a retry."""


class _Finding(NamedTuple):
    """A failed score that has no parts."""

    scorer: Scorer
    details: Mapping[str, Json]
    invocation: Invocation
    """What was scored: the invocation, or the view of one agent."""


class _Trajectory(NamedTuple):
    """A failed score that lists how tool calls deviate."""

    invocation: Invocation
    deviation: Deviation


def with_failure(evaluation: Evaluation) -> Evaluation:
    """The evaluation with its failure and its misses; itself, if it has these already."""
    failure, misses = failure_of(evaluation), misses_of(evaluation.results)
    if (failure, misses) == (evaluation.failure, evaluation.misses):
        return evaluation
    return replace(evaluation, failure=failure, misses=misses)


def failure_of(evaluation: Evaluation) -> Failure | None:
    """The failure of an invocation; `None` unless a criterion failed."""
    results = evaluation.results
    if all(result.verdict != "failed" for result in results):
        return None
    findings = list(_findings(results, evaluation.invocation))
    candidates = list(_candidates(evaluation.invocation, findings))
    category, parts = min(candidates, key=lambda one: PRECEDENCE.index(one[0]))
    return Failure(category, signature(parts))


def _candidates(
    invocation: Invocation, findings: Iterable[_Finding]
) -> Iterator[tuple[Category, Iterable[str]]]:
    """Every category that the failure could have, with the parts of its signature."""
    trajectories, others = _divided(findings)
    found = max(trajectories, key=lambda one: one.deviation.extent, default=None)
    parts = () if found is None else tuple(found.deviation.parts())
    if invocation.error:
        yield "error", ("ended with an error", *parts)
    if broken := _given_up(invocation if found is None else found.invocation, found):
        yield "tool_error", broken
    if found is not None:
        if repeated := _repeated(found):
            yield "loop", repeated
        yield _category(found), parts
    names: dict[Category, list[str]] = {}
    for scorer, details, actual in others:
        category = category_of(scorer, details.get("verdict", ""))
        names.setdefault(category, []).extend(_named(scorer, category, actual))
    for category, failed in names.items():
        yield category, sorted(failed)


def _divided(findings: Iterable[_Finding]) -> tuple[list[_Trajectory], list[_Finding]]:
    """The failed scores that list deviating calls, and the others."""
    trajectories, others = [], []
    for finding in findings:
        deviates = deviation(finding.details)
        if deviates is None:
            others.append(finding)
        else:
            trajectories.append(_Trajectory(finding.invocation, deviates))
    return trajectories, others


def _category(found: _Trajectory) -> Category:
    deviates = found.deviation
    if deviates.ends_early and _broke_off(found.invocation):
        return "ended_early"
    if deviates.missing:
        return "wrong_tool" if deviates.unexpected else "missing_call"
    if deviates.differing:
        return "wrong_argument"
    return "order" if deviates.moved else "extra_call"


def _broke_off(invocation: Invocation) -> bool:
    """Whether there is no answer, or the last request to a model or a sub-agent failed. An answer
    that was not recorded may exist.
    """
    return (
        (invocation.final_response is not None and not invocation.final_response.strip())
        or any(call.error is not None for call in invocation.model_calls[-1:])
        or any(run.error is not None for run in invocation.sub_agents[-1:])
    )


def _given_up(invocation: Invocation, found: _Trajectory | None) -> list[str]:
    """Tools that failed and did not succeed later. A call that the agent should not have made is
    its own fault.
    """
    wrong = frozenset() if found is None else found.deviation.not_as_expected
    failed = ErrorRecovery().score(invocation, None).details.get("given_up", ())
    return sorted(f"{short_name(name)} failed" for at, name in failed if at not in wrong)


def _repeated(found: _Trajectory) -> list[str]:
    """The call that was repeated most often without need, if that is a loop."""
    surplus = {at for at, _ in found.deviation.unexpected}
    if len(surplus) < _MIN_SURPLUS:
        return []
    equal = equal_calls(found.invocation)
    most = max(equal, key=lambda positions: _repetitions(positions, surplus), default=[])
    if _repetitions(most, surplus) < _MIN_SURPLUS:
        return []
    return [_repetition(found.invocation, most)]


def _repetitions(positions: Sequence[int], surplus: set[int]) -> int:
    """How many unexpected calls repeat another one. If none of the equal calls was expected, the
    first one repeats nothing.
    """
    return min(len(surplus.intersection(positions)), len(positions) - 1)


def _repetition(invocation: Invocation, positions: Sequence[int]) -> str:
    return f"{short_name(tool_name(invocation.tool_calls[positions[0]].name))} repeated"


def _named(scorer: Scorer, category: Category, invocation: Invocation) -> list[str]:
    """What failed by a scorer: the tools where it is about tools that failed or were repeated, else
    its own name.
    """
    if category == "tool_error":
        failed = ToolErrorRate().score(invocation, None).details.get("failed")
        if failed:
            return [f"{short_name(name)} failed" for _, name in failed]
    if isinstance(scorer, ToolLoops | RedundantCalls) and (most := most_repeated(invocation)):
        return [_repetition(invocation, most)]
    return [f"{short_name(scorer.name)} failed"]


def _findings(results: Sequence[Result], invocation: Invocation) -> Iterator[_Finding]:
    known = {result.criterion.name: result.score.details for result in results}
    for result in results:
        if result.verdict == "failed":
            whole = _Finding(result.criterion.scorer, result.score.details, invocation)
            yield from _leaves(whole, known)


def _leaves(finding: _Finding, known: Mapping[str, Mapping[str, Json]]) -> Iterator[_Finding]:
    """A composite criterion as its members that failed; one about an agent as its worst runs."""
    scorer, details, invocation = finding
    parts: list[_Finding] = []
    if isinstance(scorer, Composite):
        # Members are criteria of the configuration, by name. The results of these have details.
        parts = [
            _Finding(member.scorer, known.get(member.name, {}), invocation)
            for member, result in zip(scorer.of, details.get("members", ()), strict=False)
            if result["verdict"] == "failed"
        ]
    elif isinstance(scorer, OfAgent):
        parts = [
            _Finding(scorer.scorer, run["details"], _view(scorer, invocation, run["run"]))
            for run in _worst(scorer, details.get("runs", ()))
        ]
    if not parts:
        yield finding
    yield from chain.from_iterable(_leaves(part, known) for part in parts)


def _worst(scorer: OfAgent, runs: Sequence[Json]) -> list[Json]:
    worst_of = min if scorer.higher_is_better else max
    worst = worst_of((run["value"] for run in runs if run["value"] is not None), default=None)
    return [run for run in runs if run["value"] == worst]


def _view(scorer: OfAgent, invocation: Invocation, span_id: str | None) -> Invocation:
    """What was scored of an agent; `span_id` is that of its run, `None` if it did not run."""
    if span_id == invocation.span_id:
        return own_view(invocation) if scorer.view == "own" else invocation
    view_of = own_view if scorer.view == "own" else subtree_view
    runs = [run for run in invocation.sub_agents if run.span_id == span_id]
    if runs:
        return view_of(invocation, runs[0])
    return replace(invocation, tool_calls=(), sub_agents=(), model_calls=(), final_response="")

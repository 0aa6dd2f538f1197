"""The evidence of an evaluation: what explains its result to people, long after its spans are gone.

It holds the invocation as it was scored, the turn of the reference, and of each criterion the
explanation and the details. Long texts and long lists lose their end, so that one invocation takes
kilobytes at most; `cut` then says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pathgauge.collector.core.documents.adapters import adapter
from pathgauge.collector.core.documents.later_versions import read_known
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Result, Verdict
from pathgauge.collector.core.evidence.failure import Failure
from pathgauge.collector.core.evidence.shortening import MAX_BYTES, shortened
from pathgauge.collector.core.references import Unmatched
from pathgauge.scorers.matching.matchers import written
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, Reason, ReferenceTurn


@dataclass(frozen=True, slots=True)
class CriterionEvidence:
    """What one criterion said about the invocation."""

    name: str
    scorer: str
    """Name and version."""
    verdict: Verdict
    value: float | None = None
    threshold: float | None = None
    higher_is_better: bool = True
    reason: Reason | None = None
    """Why there is no value."""
    explanation: str = ""
    details: Mapping[str, Json] | None = None
    """The details of the score, for trajectories the matched, missing and unexpected calls."""
    judge: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What explains one evaluation."""

    invocation: Invocation
    criteria: tuple[CriterionEvidence, ...] = ()
    scenario_id: str | None = None
    """That of the reference, else that of the telemetry."""
    reference_version: str | None = None
    reference_source: str = ""
    turn_index: int | None = None
    turn: ReferenceTurn | None = None
    """The expected behaviour. Its matchers are in the form of reference files."""
    unmatched: Unmatched | None = None
    """Why there is no reference turn."""
    failure: Failure | None = None
    closed_by: str = "root_ended"
    revision: int = 0
    cut: bool = False
    """Whether something was left out because it is too long."""


def evidence_of(evaluation: Evaluation) -> Evidence:
    """The evidence of an evaluation, in full length."""
    match, reference = evaluation.match, evaluation.match.reference
    return Evidence(
        # The spans, kept for some scorers, are many times as long as everything else.
        replace(evaluation.invocation, spans=(), tool_schemas={}),
        tuple(map(_criterion, evaluation.results)),
        evaluation.scenario_id,
        None if reference is None else reference.version,
        "" if reference is None else reference.source,
        match.turn_index,
        None if match.turn is None else _written(match.turn),
        match.unmatched,
        evaluation.failure,
        evaluation.closed_by,
        evaluation.revision,
    )


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on an invocation: the worst of those of its criteria. `not_evaluated` is the
    least: a criterion without a value says nothing about the agent.
    """
    found = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in found), "not_evaluated")


_WORST_FIRST: tuple[Verdict, ...] = ("failed", "error", "passed", "informational")


def encode(evidence: Evidence) -> bytes:
    """The evidence as JSON of at most about `MAX_BYTES`. `decode` reads it."""
    text = _to_json(evidence)
    if len(text) <= MAX_BYTES:
        return text
    short = {**shortened(json.loads(text)), "cut": True}
    return json.dumps(short, ensure_ascii=False).encode("utf-8", "replace")


def decode(text: bytes | str) -> Evidence:
    """Raises `ValueError` if an incompatible version of pathgauge wrote it. Values of a later
    version that this one does not know, such as a flag or a category, are left out.
    """
    try:
        return read_known(Evidence, text)
    except ValueError as error:
        raise ValueError(f"evidence of another version of pathgauge: {error}") from error


def to_json(evidence: Evidence) -> dict[str, Json]:
    """The evidence as JSON objects, without fields that have their default."""
    found: dict[str, Json] = json.loads(encode(evidence))
    return found


def _criterion(result: Result) -> CriterionEvidence:
    criterion, score = result.criterion, result.score
    return CriterionEvidence(
        criterion.name,
        f"{criterion.scorer.name} {criterion.scorer.version}",
        result.verdict,
        score.value,
        criterion.threshold,
        criterion.scorer.higher_is_better,
        score.reason,
        score.explanation,
        dict(score.details) or None,
        criterion.judge,
    )


def _written(turn: ReferenceTurn) -> ReferenceTurn:
    """The turn with its matchers in the form of reference files."""
    return replace(
        turn,
        tool_calls=None if turn.tool_calls is None else _calls(turn.tool_calls),
        alternatives=tuple(map(_calls, turn.alternatives)),
        forbidden=_calls(turn.forbidden),
        agents={name: _written(part) for name, part in turn.agents.items()},
    )


def _calls(calls: Iterable[ExpectedCall]) -> tuple[ExpectedCall, ...]:
    return tuple(
        call if call.arguments is None else replace(call, arguments=written(call.arguments))
        for call in calls
    )


def _to_json(evidence: Evidence) -> bytes:
    try:
        return adapter(Evidence).dump_json(evidence, exclude_defaults=True, fallback=_plain)
    except ValueError:  # lone surrogates, which have no UTF-8 form
        plain = adapter(Evidence).dump_python(evidence, exclude_defaults=True, fallback=_plain)
        text = json.dumps(plain, default=_plain, ensure_ascii=False)
        return text.encode("utf-8", "replace")  # `decode` refuses them also as escapes


def _plain(value: Any) -> Json:
    """A scorer may put anything into its details."""
    return sorted(value, key=str) if isinstance(value, set | frozenset) else repr(value)

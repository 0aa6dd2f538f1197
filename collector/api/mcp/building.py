"""Builds the answers of the tools from those of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathgauge.collector.api import models
from pathgauge.collector.api.mcp import answers
from pathgauge.collector.api.mcp.shaping import Shaper, optional_name
from pathgauge.collector.api.mcp.untrusted import name
from pathgauge.scorers.types import Json

_WORST_FIRST: tuple[str, ...] = ("failed", "error", "not_evaluated", "informational", "passed")


def summary(shaper: Shaper, found: models.Summary) -> answers.SummaryAnswer:
    """Agents and scenarios."""
    unmatched = found.unmatched.scenarios
    left_out = []
    if found.further_series:
        left_out.append(f"further series: {found.further_series}")
    return answers.SummaryAnswer(
        left_out=left_out,
        series=[_series(shaper, one) for one in shaper.some("series", found.series)],
        unmatched=[
            answers.UnmatchedScenario(
                tenant=name(one.tenant) or None,
                scenario_id=name(one.scenario_id),
                invocations=one.invocations,
                closest=[name(known) for known in one.closest[:3]],
            )
            for one in shaper.some("unmatched", unmatched)
        ],
        telemetry=None if found.telemetry is None else _telemetry(found.telemetry),
    )


def _telemetry(found: models.Telemetry) -> models.Telemetry:
    return found.model_copy(update={"unready": [name(one) for one in found.unready[:5]]})


def failures(
    shaper: Shaper,
    clusters: models.Clusters,
    newest: Sequence[models.Result],
    more: str | None,
    left_out: Sequence[str],
) -> answers.FailuresAnswer:
    """Clusters of failures, and failed results. `more` is the cursor of the next page."""
    shown = shaper.some("newest", newest)
    return answers.FailuresAnswer(
        left_out=list(left_out),
        failures=clusters.failures,
        complete=clusters.complete,
        clusters=[
            answers.Cluster(
                tenant=name(one.tenant) or None,
                agent=optional_name(one.agent),
                scenario_id=optional_name(one.scenario_id),
                category=one.category,
                signature=one.signature,
                failures=one.failures,
                first=one.first,
                last=one.last,
                trace_id=one.trace_id,
                span_id=one.span_id,
            )
            for one in shaper.some("clusters", clusters.clusters)
        ],
        newest=[_result(shaper, one, ("failed", "error")) for one in shown],
        next=more if len(shown) == len(newest) else None,  # a cursor would skip what is not shown
    )


def not_searched(page: models.Results) -> list[str]:
    """What a search that ended early leaves out: nobody must take it for "no failures"."""
    if page.searched_to is None:
        return []
    time = page.searched_to.isoformat(timespec="seconds")
    return [f"newest: nothing before {time} was searched; `next` goes on"]


def explained(shaper: Shaper, found: Sequence[models.Explained]) -> answers.ExplainedAnswer:
    """Results with their evidence, failed ones first."""
    worst = sorted(found, key=lambda one: _badness(one.result.verdict))
    return answers.ExplainedAnswer(
        results=[_explained(shaper, one) for one in shaper.some("results", worst)]
    )


def versions(shaper: Shaper, found: models.Versions) -> answers.VersionsAnswer:
    """The versions of an agent."""
    return answers.VersionsAnswer(
        complete=found.complete,
        versions=[
            answers.VersionRuns(
                version=optional_name(one.version),
                invocations=one.invocations,
                verdicts=one.verdicts,
                first=one.first,
                last=one.last,
                criteria=[
                    answers.CriterionRuns(
                        criterion=name(criterion.criterion),
                        mean=criterion.mean,
                        samples=criterion.samples,
                        failed=criterion.failed,
                        threshold=criterion.threshold,
                    )
                    for criterion in shaper.some("criteria", one.criteria)
                ],
            )
            for one in shaper.some("versions", found.versions)
        ],
    )


def reference(shaper: Shaper, found: models.ReferenceDocument) -> answers.ReferenceAnswer:
    """The turns of a reference."""
    about = ("scenario", "turns", "criteria", "expected_interval", "required")
    only_turn = {key: value for key, value in found.document.items() if key not in about}
    turns: Sequence[Json] = found.document.get("turns", [only_turn])
    return answers.ReferenceAnswer(
        scenario_id=name(found.scenario_id),
        version=name(found.version),
        source=name(found.source),
        active=found.active,
        turn_index=found.turn_index,
        turns=[text for one in shaper.some("turns", turns) if (text := shaper.json(one))],
        criteria=shaper.json(found.document.get("criteria")),
    )


def _series(shaper: Shaper, series: models.Series) -> answers.Series:
    return answers.Series(
        tenant=name(series.tenant) or None,
        agent=optional_name(series.agent),
        scenario_id=optional_name(series.scenario_id),
        last=series.last,
        scores=[
            answers.Score(
                criterion=name(one.criterion),
                mean=one.mean,
                samples=one.samples,
                threshold=one.threshold,
                higher_is_better=one.higher_is_better,
                state=one.state,
            )
            for one in shaper.some("scores", series.scores)
        ],
    )


def _result(
    shaper: Shaper, result: models.Result, verdicts: Sequence[str] | None = None
) -> answers.Result:
    """A result with its criteria that have one of the verdicts, failed ones first."""
    wanted = [one for one in result.criteria if verdicts is None or one.verdict in verdicts]
    wanted.sort(key=lambda one: _badness(one.verdict))
    return answers.Result(
        trace_id=result.trace_id,
        span_id=result.span_id,
        tenant=name(result.tenant) or None,
        time=result.time,
        agent=optional_name(result.agent),
        agent_version=optional_name(result.agent_version),
        scenario_id=optional_name(result.scenario_id),
        verdict=result.verdict,
        category=result.category,
        signature=result.signature,
        reference_version=optional_name(result.reference_version),
        unmatched=result.unmatched,
        flags=result.flags,
        duration_s=result.duration_s,
        criteria=[
            answers.Criterion(
                name=name(one.name),
                verdict=one.verdict,
                value=one.value,
                threshold=one.threshold,
                reason=optional_name(one.reason),
                explanation=shaper.text(one.explanation or None),
            )
            for one in shaper.some("criteria", wanted)
        ],
    )


def _badness(verdict: str) -> int:
    """The place of a verdict; that of a later version comes last."""
    return _WORST_FIRST.index(verdict) if verdict in _WORST_FIRST else len(_WORST_FIRST)


def _explained(shaper: Shaper, one: models.Explained) -> answers.Explained:
    evidence: Mapping[str, Json] = one.evidence or {}
    invocation = evidence.get("invocation", {})
    turn = evidence.get("turn") or {}
    return answers.Explained(
        result=_result(shaper, one.result),
        user_input=shaper.text(invocation.get("user_input")),
        final_response=shaper.text(invocation.get("final_response")),
        expected_response=shaper.text(turn.get("response")),
        error_type=optional_name(invocation.get("error_type")),
        comparisons=[
            answers.Comparison(
                criteria=[name(one) for one in shaper.some("compared criteria", compared.criteria)],
                calls=[
                    answers.ComparedCall(
                        mark=row.mark,
                        expected=shaper.text(row.expected or None),
                        actual=shaper.text(row.actual or None),
                    )
                    for row in shaper.some("compared calls", compared.calls)
                ],
            )
            for compared in shaper.some("comparisons", one.comparisons)
        ],
        tool_calls=[
            answers.ToolCall(
                name=name(call["name"]),
                agent=optional_name(call.get("agent")),
                arguments=shaper.json(call.get("arguments")),
                result=shaper.json(call.get("result")),
                error=shaper.text(call.get("error")),
            )
            for call in shaper.some("tool calls", invocation.get("tool_calls", ()))
        ],
        evidence_kept=one.evidence is not None,
    )

"""One result: what the agent did, what the reference expects, and why the criteria say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from pathgauge.collector.api import conversations, feedback, models, reading
from pathgauge.collector.api.feedback_models import GivenAnswer
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evidence.comparison import alignments, value_text
from pathgauge.collector.core.evidence.evidence import Evidence
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.web import answers, links
from pathgauge.collector.web.calls import CallView, PairView, actual_view, expected_view, pair_view
from pathgauge.collector.web.diffs import Piece, word_diff
from pathgauge.collector.web.timeline import timeline
from pathgauge.collector.web.visit import Page, Visit

MAX_CALLS = 200
MAX_ANSWERS = 100
NOT_STORED = (
    "No result of this trace and span is stored: it is too old, was removed, or belongs to another"
    " tenant."
)

IN_MEMORY = "This collector runs with store: memory, so it keeps no results."


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Both trajectories, as these criteria have aligned them."""

    criteria: Sequence[str]
    pairs: Sequence[PairView]
    further: int


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call of the agent with its result."""

    call: CallView
    agent: str | None
    result: str | None
    error: str | None
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Answers:
    """Expected and actual answer, in pieces that are equal or differ; `None`: not known."""

    expected: Sequence[Piece] | None
    actual: Sequence[Piece] | None


def result(visit: Visit) -> Page:
    """The page."""
    stored, evidence = shown_result(visit)
    explained = reading.result_of(stored, evidence)
    values: dict[str, Any] = {
        "result": explained,
        "evidence": evidence,
        "here": links.result(stored.trace_id, stored.span_id, stored.tenant),
        "scenario_link": links.scenario(stored.agent, stored.scenario_id, stored.tenant),
        "similar_link": _similar(visit, explained),
        "trace_link": _trace_link(visit, stored),
        "reference_link": links.recorded(stored.trace_id, stored.span_id, stored.tenant),
        "feedback_link": links.feedback(stored.trace_id, stored.span_id, stored.tenant),
        "takes_feedback": stored.tenant in visit.answerable,
        "people": _people(visit, stored),
    }
    if evidence is not None:
        invocation = evidence.invocation
        values |= {
            "comparisons": _comparisons(evidence),
            "expected": _expected(evidence),
            "made": list(_made(evidence))[:MAX_CALLS],
            "further_calls": _beyond(invocation.tool_calls),
            "answers": _answers(evidence),
            "timeline": timeline(invocation),
            "turns": conversations.turns(visit.sources, stored, evidence),
        }
    return Page("result.html", values)


def _trace_link(visit: Visit, stored: StoredResult) -> str | None:
    """Where the trace is shown. A session is no trace."""
    if not visit.trace_url or stored.session is not None:
        return None
    return links.trace(visit.trace_url, stored.trace_id)


def of_trace(visit: Visit) -> Response:
    """Leads on to the only result of a trace, or to the list of its results: exemplars and other
    programs know no span.
    """
    found = reading.stored(visit.sources, visit.shown_tenant, visit.path["trace_id"])
    if not found:
        raise _not_stored(visit.sources)
    if len(found) == 1:
        [(one, _)] = found
        return answers.redirect(links.result(one.trace_id, one.span_id, one.tenant))
    return answers.redirect(
        links.results(trace_id=visit.path["trace_id"], tenant=visit.query.get("tenant"))
    )


def _not_stored(sources: Sources) -> ProblemError:
    return ProblemError(404, IN_MEMORY if sources.reading is None else NOT_STORED)


def shown_result(visit: Visit) -> tuple[StoredResult, Evidence | None]:
    """The result whose page is visited. Raises `ProblemError` unless there is exactly one."""
    return stored_result(visit.sources, visit.shown_tenant, visit.path)


def stored_result(
    sources: Sources, tenant: str | None, path: Mapping[str, str]
) -> tuple[StoredResult, Evidence | None]:
    """The result that an address means. Raises `ProblemError` unless there is exactly one."""
    found = reading.stored(sources, tenant, path["trace_id"], path["span_id"])
    # Addresses of the pages name the tenant, unless it has no name.
    found = [one for one in found if not one[0].tenant] or found
    if not found:
        raise _not_stored(sources)
    if len(found) > 1:
        raise ProblemError(409, "Several tenants have this trace: add one of them, as ?tenant=...")
    return found[0]


def _people(visit: Visit, stored: StoredResult) -> Sequence[GivenAnswer]:
    """What people said of the run, or of the session."""
    return feedback.given_about(visit.sources, stored)[:MAX_ANSWERS]


def _similar(visit: Visit, result: models.Result) -> str | None:
    """The results that failed in the same way."""
    if result.signature is None:
        return None
    return links.results_of(
        result.agent,
        result.scenario_id,
        visit.listed(result.tenant),
        signature=result.signature,
    )


def _comparisons(evidence: Evidence) -> list[ComparisonView]:
    """First those of criteria that failed, and of them the one with the most differences."""
    failed = {one.name for one in evidence.criteria if one.verdict == "failed"}
    views = [
        ComparisonView(names, list(map(pair_view, aligned[:MAX_CALLS])), _beyond(aligned))
        for names, aligned in alignments(evidence)
    ]
    return sorted(
        views,
        key=lambda view: (
            failed.isdisjoint(view.criteria),
            -sum(pair.mark != "=" for pair in view.pairs),
        ),
    )


def _beyond(calls: Sequence[object]) -> int:
    return max(0, len(calls) - MAX_CALLS)


def _expected(evidence: Evidence) -> Sequence[CallView] | None:
    """The expected calls; `None` without an expectation."""
    if evidence.turn is None or evidence.turn.tool_calls is None:
        return None
    return list(map(expected_view, evidence.turn.tool_calls[:MAX_CALLS]))


def _made(evidence: Evidence) -> Iterator[MadeCall]:
    for call in evidence.invocation.tool_calls:
        known = call.start_ns is not None and call.end_ns is not None
        yield MadeCall(
            actual_view(call),
            call.agent,
            _text(call.result),
            call.error,
            ((call.end_ns or 0) - (call.start_ns or 0)) / 1e9 if known else None,
        )


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value_text(value)


def _answers(evidence: Evidence) -> Answers:
    expected = None if evidence.turn is None else evidence.turn.response
    actual = evidence.invocation.final_response
    if expected is None or actual is None:
        return Answers(
            None if expected is None else [Piece(expected, False)],
            None if actual is None else [Piece(actual, False)],
        )
    return Answers(*word_diff(expected, actual))

"""Results that match the filters in the address, newest first, with a reason for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import chain
from typing import get_args

from pathgauge.collector.api import models, reading
from pathgauge.collector.api.models import Criterion
from pathgauge.collector.api.problems import ProblemError, checked
from pathgauge.collector.api.queries import ResultQuery
from pathgauge.collector.core.evaluations.evaluator import Verdict
from pathgauge.collector.core.evidence.failures import CATEGORIES
from pathgauge.collector.core.references import UNMATCHED
from pathgauge.collector.web import links
from pathgauge.collector.web.display import counted, number
from pathgauge.collector.web.visit import Page, Visit
from pathgauge.collector.web.wording import FLAGS, VERDICTS, reason_text
from pathgauge.scorers.types import Reason

LIMITS = (50, 100, 500)
ORDERS = {"newest": "newest first", "worst": "worst first"}
MAX_REASONS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One result."""

    result: models.Result
    link: str
    reason: str
    chosen: Criterion | None
    """The criterion that the list is filtered by."""


def result_list(visit: Visit) -> Page | Visit:
    """The page. `order=worst` sorts by the criterion of the filter."""
    given = dict(visit.query)
    order = given.pop("order", "newest")
    message = None
    found, is_cut = models.Results(results=[], next=None), False
    try:
        found, is_cut = _searched(visit, given)
    except ProblemError as error:
        if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        message = error.detail
    is_vain = is_cut and not found.results
    if is_vain and time.monotonic() < visit.search_until:
        return replace(visit, resumed=found.next)
    rows = [_row(one, given.get("criterion")) for one in found.results]
    if order == "worst":
        rows.sort(key=_badness(_is_high_good(visit, given.get("criterion"))))
    return Page(
        "results.html",
        {
            "rows": rows,
            "message": message,
            "given": {**dict.fromkeys(ResultQuery.model_fields, ""), **given, "order": order},
            "is_filtered": bool(given.keys() - {"limit", "cursor"}),
            "next": found.next
            and links.with_query("/results", {**visit.query, "cursor": found.next}),
            "newest": links.with_query("/results", _without_cursor(visit.query)),
            # A live update is one query: it would hide what a longer search has found.
            "is_live": not ("cursor" in given or message or visit.resumed or is_vain),
            "searched_to": found.searched_to if is_cut else None,
            "choices": _CHOICES,
            "may_choose_tenant": visit.tenant is None,
            "in_memory": visit.sources.reading is None,
        },
        422 if message else 200,
    )


_CHOICES: Mapping[str, Mapping[str, str]] = {
    "verdict": {name: VERDICTS[name] for name in get_args(Verdict)},
    "category": {name: name.replace("_", " ") for name in CATEGORIES},
    "reason": {name: reason_text(name) for name in (*UNMATCHED, *get_args(Reason))},
    "flag": {name: name.replace("_", " ") for name in FLAGS},
    "order": ORDERS,
    "limit": {str(limit): counted(limit, "result") for limit in LIMITS},
}


def _searched(visit: Visit, given: Mapping[str, str]) -> tuple[models.Results, bool]:
    """Results, and whether the search has ended before the page was full."""
    query = checked(ResultQuery, {name: _named(given[name]) for name in given})
    if visit.resumed is not None:
        query = query.model_copy(update={"cursor": visit.resumed})
    found = reading.results(visit.sources, visit.tenant, query)
    return found, found.next is not None and len(found.results) < query.limit


def _row(result: models.Result, criterion: str | None) -> Row:
    return Row(
        result,
        links.result(result.trace_id, result.span_id, result.tenant),
        _reason(result),
        next((one for one in result.criteria if one.name == criterion), None),
    )


def _reason(result: models.Result) -> str:
    """Why the result is as it is, in one line."""
    if result.signature is not None:
        return result.signature
    if failed := [one for one in result.criteria if one.verdict in ("failed", "error")]:
        return "; ".join(map(_missed, failed[:MAX_REASONS]))
    if result.unmatched is not None:
        return reason_text(result.unmatched)
    return _passed(result.criteria)


def _missed(one: Criterion) -> str:
    if one.value is None:
        return f"{one.name}: {reason_text(one.reason or one.verdict)}"
    return f"{one.name} {number(one.value)}, threshold {number(one.threshold)}"


def _passed(criteria: Sequence[Criterion]) -> str:
    passed = sum(one.verdict == "passed" for one in criteria)
    if passed:
        return f"passed {counted(passed, 'threshold')}"
    reasons = dict.fromkeys(reason_text(one.reason) for one in criteria if one.reason is not None)
    return "; ".join([*reasons][:MAX_REASONS]) or "no criterion has a verdict"


def _badness(is_high_good: bool) -> Callable[[Row], tuple[bool, bool, float]]:
    """The order of rows: failures first, then by the value of the chosen criterion."""

    def order(row: Row) -> tuple[bool, bool, float]:
        value = None if row.chosen is None else row.chosen.value
        sign = 1 if is_high_good else -1
        return row.result.verdict != "failed", value is None, sign * (value or 0.0)

    return order


def _is_high_good(visit: Visit, criterion: str | None) -> bool:
    recent = (one.criterion for one in visit.sources.scores())
    known = chain(recent, visit.sources.evaluator().every)
    return next(
        (one.scorer.higher_is_better for one in known if one and one.name == criterion), True
    )


def _named(value: str) -> str:
    return "" if value == links.NO_NAME else value


def _without_cursor(query: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in query.items() if name != "cursor"}

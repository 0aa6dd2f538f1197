"""Which scorer is compared with which check of pydantic-evals, DeepEval and MLflow. These checks
need no reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pydantic import TypeAdapter

from pathgauge import (
    AllowedTools,
    ForbiddenTools,
    HasMatchingSpan,
    ResponseLength,
    ResponsePattern,
    Score,
    SpanQuery,
    SpanRecord,
    ToolLoops,
    invocation,
)

from . import span_cases
from .cases import Case
from .check_cases import ARGUMENTS_AS_TEXT, WORDS, checks, lengths
from .comparisons import Comparison, Oracle, of_calls
from .differences import BLANKS, Scoring

MILLISECOND = 10**6
QUERIES: TypeAdapter[SpanQuery] = TypeAdapter(SpanQuery)


def of_spans(read: Callable[[Score], float | None]) -> Scoring:
    """The scoring of spans."""

    def scoring(case: Case) -> float | None:
        spans = tuple(
            SpanRecord(
                str(number),
                None if parent is None else str(parent),
                name,
                status,
                start * MILLISECOND,
                end * MILLISECOND,
                attributes,
            )
            for number, parent, name, start, end, status, attributes in case["spans"]
        )
        scorer = HasMatchingSpan(QUERIES.validate_python(case["query"]))
        return read(scorer.score(invocation(spans=spans), None))

    return scoring


def allowed(case: Case) -> float | None:
    """The share of allowed calls."""
    return of_calls(AllowedTools(tuple(case["allowed"]), partial=True))(case)


def denied(case: Case) -> float | None:
    """Whether no forbidden tool was called; there is no score without a forbidden tool."""
    if not case["allowed"]:
        return 1.0
    return of_calls(ForbiddenTools(tuple(case["allowed"])))(case)


def repetition(case: Case) -> float | None:
    """How bad the repetition of calls is; there is no score without calls."""
    return of_calls(ToolLoops())(case) if case["actual"] else 1.0


def of_pattern(form: str, *, whole: bool = False) -> Scoring:
    """The scoring of a response by the pattern of the case, written into `form`."""
    return lambda case: (
        _pattern(form.format(case["pattern"]), whole, case["ignore_case"])
        .score(invocation(final_response=case["response"] or "-"), None)
        .value
    )


@cache
def _pattern(pattern: str, whole: bool, ignore_case: bool) -> ResponsePattern:
    return ResponsePattern(pattern, whole, ignore_case)


def of_length(unit: str) -> Scoring:
    """The scoring of the length of a response."""

    def scoring(case: Case) -> float | None:
        low, high = case["limits"][unit]
        scorer = ResponseLength(None, None, low, high)
        if unit == "chars":
            scorer = ResponseLength(low, high)
        return scorer.score(invocation(final_response=case["response"] or "-"), None).value

    return scoring


CHECKS = (
    Oracle(
        "pydantic_spans",
        span_cases.span_queries,
        tuple(
            Comparison(name, of_spans(read), (span_cases.BOOLEANS, span_cases.MISSING_IS_NULL))
            for name, read in (
                ("has_matching_span", lambda score: score.value),
                ("count", lambda score: float(score.details["count"])),
            )
        ),
    ),
    Oracle(
        "deepeval_checks",
        checks,
        (
            Comparison("allowed", allowed, (BLANKS,)),
            Comparison("denied", denied, (BLANKS,)),
            Comparison("repetition", repetition, (BLANKS, ARGUMENTS_AS_TEXT)),
            Comparison("pattern", of_pattern("{}", whole=True), (WORDS,)),
        ),
    ),
    Oracle(
        "mlflow_responses",
        lengths,
        (
            Comparison("search", of_pattern("{}"), (WORDS,)),
            Comparison("fullmatch", of_pattern(r"\A(?:{})\Z"), (WORDS,)),
            Comparison("chars", of_length("chars")),
            Comparison("words", of_length("words")),
        ),
    ),
)

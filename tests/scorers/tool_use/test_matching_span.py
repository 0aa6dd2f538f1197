"""Scoring matching spans: how many must match, and what missing spans mean."""

from typing import Any

import pytest

from pathgauge import (
    Extras,
    HasMatchingSpan,
    Score,
    SpanQuery,
    SpanRecord,
    check_scorer,
    invocation,
)
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.composite import Composite, Member

SPANS = (
    SpanRecord("1", None, "agent"),
    SpanRecord("2", "1", "query", "error", attributes={"db": "pg"}),
    SpanRecord("3", "1", "query"),
    SpanRecord("4", "1", ""),
)
QUERY = SpanQuery(name_equals="query")


def score(query: SpanQuery | None = QUERY, flags: str = "", **limits: Any) -> Score:
    actual = invocation(spans=SPANS, flags=frozenset(flags.split()))
    return HasMatchingSpan(query, **limits).score(actual, None)


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ({}, 1.0),
        ({"min_count": 2}, 1.0),
        ({"min_count": 3}, 0.0),
        ({"max_count": 2}, 1.0),
        ({"max_count": 1}, 0.0),
        ({"min_count": 0, "max_count": 0}, 0.0),
    ],
)
def test_the_number_of_matching_spans_must_be_within_the_limits(
    limits: dict[str, Any], value: float
) -> None:
    assert score(**limits).value == value


def test_the_explanation_names_the_spans() -> None:
    assert score() == Score(
        1.0,
        None,
        "2 of 4 spans match: query x2",
        {"count": 2, "spans": [["2", "query"], ["3", "query"]]},
    )
    assert score(SpanQuery(name_equals="x")) == Score(
        0.0, None, "0 of 4 spans match", {"count": 0, "spans": []}
    )
    assert score(SpanQuery(name_matches_regex="$")).explanation == "1 of 4 spans match: (no name)"


def test_details_list_a_hundred_spans() -> None:
    actual = invocation(spans=tuple(SpanRecord(str(at), name="query") for at in range(150)))
    details = HasMatchingSpan(QUERY).score(actual, None).details
    assert (details["count"], len(details["spans"])) == (150, 100)


@pytest.mark.parametrize(
    ("query", "flags", "limits", "value"),
    [
        (QUERY, "dropped_spans", {}, 1.0),
        (QUERY, "dropped_spans", {"min_count": 3}, None),
        (QUERY, "dropped_spans", {"max_count": 1}, 0.0),
        (QUERY, "dropped_spans", {"max_count": 2}, None),
        (SpanQuery(not_=QUERY), "dropped_spans", {}, None),
        (SpanQuery(name_equals="x"), "dropped_attributes", {}, 0.0),
        (SpanQuery(has_attribute_keys=("x",)), "dropped_attributes", {}, None),
        (SpanQuery(has_attribute_keys=("db",)), "dropped_attributes", {}, 1.0),
        (SpanQuery(has_attribute_keys=("x",)), "redacted", {}, 0.0),
    ],
)
def test_a_value_is_certain_only_if_missing_spans_cannot_change_it(
    query: SpanQuery, flags: str, limits: dict[str, int], value: float | None
) -> None:
    found = score(query, flags, **limits)
    assert (found.value, found.reason) == (value, "incomplete" if value is None else None)


def test_there_is_no_value_without_spans_or_query() -> None:
    assert HasMatchingSpan(QUERY).score(invocation(), None).reason == "spans_not_recorded"
    assert score(None).reason == "not_applicable"


def test_there_is_no_value_where_an_attribute_cannot_be_compared() -> None:
    actual = invocation(spans=(SpanRecord("1", too_long=("sql",)),))
    query = SpanQuery(has_attributes={"sql": "SELECT 1"})
    assert HasMatchingSpan(query).score(actual, None).reason == "too_long"


def test_it_needs_the_attributes_of_its_query() -> None:
    query = SpanQuery(
        has_attributes={"db": "pg"}, no_child_has=SpanQuery(has_attribute_keys=("x",))
    )
    scorer = HasMatchingSpan(query)
    assert scorer.extras == Extras(frozenset({"db", "x"}))
    assert HasMatchingSpan().extras == Extras()
    assert HasMatchingSpan(QUERY).extras == Extras(frozenset())
    assert OfAgent(scorer, "billing").extras == scorer.extras
    both = Composite((Member("one", scorer, 1), Member("other", HasMatchingSpan(QUERY), 1)))
    assert both.extras == scorer.extras


@pytest.mark.parametrize("limits", [(-1, None), (2, 1)])
def test_limits_that_make_no_sense_are_refused(limits: tuple[int, int | None]) -> None:
    with pytest.raises(ValueError, match="min_count, max_count: found"):
        HasMatchingSpan(QUERY, *limits)


def test_it_keeps_the_contract() -> None:
    check_scorer(
        HasMatchingSpan(SpanQuery(has_attributes={"db": "pg"}), 0, 3),
        [(invocation(spans=SPANS), None)],
    )

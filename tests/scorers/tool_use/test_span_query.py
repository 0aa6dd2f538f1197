"""Queries on spans: every condition, on one tree and against a plain reading of its definition."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import TypeAdapter

from pathgauge import SpanQuery, SpanRecord, TooLongError
from pathgauge.scorers.tool_use.span_matching import MAX_NAMES, MAX_STEPS, matching_spans
from support.examples import examples

SECOND = 10**9
TREE = (
    SpanRecord("1", None, "agent", "ok", 0, 10 * SECOND, {"team": "billing"}),
    SpanRecord("2", "1", "chat", "unset", 0, 2 * SECOND, {"model": "m", "tokens": 7}),
    SpanRecord("3", "1", "tool search", "error", SECOND, 4 * SECOND, {"args": '{"q": ["tea"]}'}),
    SpanRecord("4", "3", "db query", "ok", SECOND, 3 * SECOND, {"db.system": "pg", "rows": [1, 2]}),
    SpanRecord("5", "3", "db query", "error", 3 * SECOND, None, {"db.system": "pg", "flag": True}),
    SpanRecord("6", "5", "retry", "unset", 3 * SECOND, 3 * SECOND, {}, ("body",)),
)


def query(written: Any) -> SpanQuery:
    """A query as a configuration gives it."""
    return TypeAdapter(SpanQuery).validate_python(written)


def found(written: Any, spans: Sequence[SpanRecord] = TREE) -> str:
    """The ids of the spans that match."""
    return "".join(spans[at].span_id for at in matching_spans(query(written), spans))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"name_equals": "chat"}, "2"),
        ({"name_contains": "query"}, "45"),
        ({"name_matches_regex": "db|chat"}, "245"),
        ({"name_matches_regex": "query"}, ""),
        ({"has_status": "error"}, "35"),
        ({"has_status": "unset"}, "26"),
        ({"has_attributes": {"db.system": "pg"}}, "45"),
        ({"has_attributes": {"db.system": "pg", "flag": True}}, "5"),
        ({"has_attributes": {"tokens": 7.0}}, "2"),
        ({"has_attributes": {"flag": 1}}, ""),
        ({"has_attributes": {"tokens": None}}, ""),
        ({"has_attributes": {"rows": [1, 2]}}, "4"),
        ({"has_attributes": {"args": {"q": ["tea"]}}}, "3"),
        ({"has_attributes": {"args": '{"q": ["tea"]}'}}, "3"),
        ({"has_attributes": {"db.system": {"$regex": "p."}}}, "45"),
        ({"has_attributes": {"args": {"$at_least": {"q": {"$any": True}}}}}, "3"),
        ({"has_attributes": {"flag": {"$ignore": True}, "db.system": "pg"}}, "45"),
        ({"has_attribute_keys": ["rows"]}, "4"),
        ({"has_attribute_keys": ["body"]}, "6"),
        ({"has_attribute_keys": ["db.system", "flag"]}, "5"),
        ({"min_duration": 2}, "1234"),
        ({"min_duration": 3.0001}, "1"),
        ({"max_duration": 2}, "246"),
        ({"min_duration": 2, "max_duration": 2}, "24"),
        ({"not_": {"has_status": "error"}}, "1246"),
        ({"and_": [{"has_status": "error"}, {"name_contains": "db"}]}, "5"),
        ({"or_": [{"has_status": "error"}, {"name_contains": "db"}]}, "345"),
        ({"or_": [{"has_status": "error"}, {"name_contains": "db"}], "max_depth": 1}, "3"),
        ({"min_child_count": 1}, "135"),
        ({"min_child_count": 2}, "13"),
        ({"max_child_count": 0}, "246"),
        ({"some_child_has": {"has_status": "error"}}, "13"),
        ({"all_children_have": {"has_status": "error"}}, "246"),
        ({"all_children_have": {"name_contains": "query"}, "min_child_count": 1}, "3"),
        ({"no_child_has": {"has_status": "error"}}, "2456"),
        ({"min_descendant_count": 3}, "13"),
        ({"min_descendant_count": 5}, "1"),
        ({"max_descendant_count": 1}, "2456"),
        ({"some_descendant_has": {"name_equals": "retry"}}, "135"),
        ({"all_descendants_have": {"has_attribute_keys": ["db.system"]}}, "246"),
        ({"no_descendant_has": {"name_equals": "retry"}}, "246"),
        ({"min_depth": 2}, "456"),
        ({"max_depth": 0}, "1"),
        ({"min_depth": 1, "max_depth": 1}, "23"),
        ({"some_ancestor_has": {"has_status": "error"}}, "456"),
        ({"all_ancestors_have": {"has_status": "error"}}, "1"),
        ({"all_ancestors_have": {"has_status": "ok"}}, "123"),
        ({"no_ancestor_has": {"has_status": "error"}}, "123"),
        (
            {
                "some_descendant_has": {"name_equals": "retry"},
                "stop_recursing_when": {"name_contains": "tool"},
            },
            "35",
        ),
        (
            {
                "some_descendant_has": {"name_contains": "tool"},
                "stop_recursing_when": {"name_contains": "tool"},
            },
            "1",
        ),
        (
            {
                "no_ancestor_has": {"name_equals": "agent"},
                "stop_recursing_when": {"name_contains": "tool"},
            },
            "1456",
        ),
        (
            {
                "all_descendants_have": {"has_status": "error"},
                "stop_recursing_when": {"name_contains": "query"},
            },
            "246",
        ),
        ({"some_child_has": {"some_child_has": {"not_": {"name_contains": "x"}}}}, "13"),
    ],
    ids=json.dumps,
)
def test_a_query_finds_the_spans_for_which_all_its_conditions_hold(
    written: Any, expected: str
) -> None:
    assert found(written) == expected


def test_a_duration_that_is_not_known_is_neither_long_nor_short() -> None:
    unknown = [replace(TREE[0], end_ns=None), replace(TREE[1], start_ns=5, end_ns=4)]
    assert found({"min_duration": 0}, unknown) == ""
    assert found({"max_duration": 1e9}, unknown) == ""
    assert found({"not_": {"min_duration": 0}}, unknown) == "12"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({}, "found no condition, expected at least one"),
        ({"not_": {}}, "found no condition, expected at least one"),
        ({"name_contains": ""}, "name_contains: found nothing, expected a condition"),
        ({"or_": []}, "or_: found nothing, expected a condition"),
        ({"has_attributes": {}}, "has_attributes: found nothing, expected a condition"),
        ({"has_attribute_keys": []}, "has_attribute_keys: found nothing, expected a condition"),
        (
            {"has_attributes": {"a": {"$rgx": "x"}}},
            r"has_attributes: a.\$rgx: found an unknown key",
        ),
        ({"name_matches_regex": "("}, r"name_matches_regex: found '\(', expected a regular"),
        ({"min_depth": -1}, "min_depth: found -1, expected a number from 0"),
        ({"max_duration": float("nan")}, "max_duration: found nan, expected a number from 0"),
        (
            {"min_child_count": 2, "max_child_count": 1},
            "min_child_count, max_child_count: found 2 and 1, expected a maximum that is not below",
        ),
        (
            {"name_equals": "x", "stop_recursing_when": {"name_equals": "y"}},
            "stop_recursing_when: found alone, expected beside a condition on descendants or",
        ),
        ({"stop_recursing_when": {"name_equals": "y"}}, "found no condition"),
        ({"has_status": "fine"}, "has_status"),
        ({"name_equal": "x"}, "name_equal"),
    ],
    ids=json.dumps,
)
def test_a_query_that_makes_no_sense_is_refused(written: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TypeAdapter(SpanQuery).validate_python(written, extra="forbid")


def test_the_attributes_of_a_query_are_those_of_all_its_parts() -> None:
    nested = query(
        {
            "has_attributes": {"a": 1},
            "or_": [{"has_attribute_keys": ["b"]}, {"not_": {"has_attributes": {"c": 2}}}],
            "some_descendant_has": {"has_attribute_keys": ["d", "a"]},
        }
    )
    assert nested.keys == frozenset("abcd")
    assert nested.size == 7


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"name_equals": "x", "min_depth": 1, "max_duration": 2}, True),
        ({"some_child_has": {"has_status": "error"}}, True),
        ({"or_": [{"name_equals": "x"}, {"max_depth": 1}]}, False),
        ({"not_": {"name_equals": "x"}}, False),
        ({"no_descendant_has": {"name_equals": "x"}}, False),
        ({"some_ancestor_has": {"all_children_have": {"name_equals": "x"}}}, False),
    ],
)
def test_a_match_survives_more_spans_unless_a_condition_forbids_some(
    written: Any, expected: bool
) -> None:
    assert query(written).survives_more_spans is expected


def test_queries_are_equal_by_their_conditions() -> None:
    one = {"has_attributes": {"a": 1}, "or_": [{"name_equals": "x"}]}
    assert query(one) == query(one)
    assert hash(query(one)) == hash(query(one))
    assert query(one) != query(one | {"has_attributes": {"a": 2}})


def test_a_value_that_is_too_long_is_neither_equal_nor_not() -> None:
    with pytest.raises(TooLongError, match="the attribute body of the span retry is too long"):
        found({"has_attributes": {"body": "x"}})


def test_too_many_spans_conditions_or_names_are_too_long() -> None:
    many = [SpanRecord(str(at), name=f"span {at}") for at in range(MAX_NAMES + 1)]
    assert len(matching_spans(query({"name_matches_regex": "span"}), many[1:])) == MAX_NAMES
    with pytest.raises(TooLongError, match="more than 500 names of spans"):
        found({"name_matches_regex": "span"}, many)
    same = [replace(span, name="span") for span in many] * 10
    assert len(matching_spans(query({"name_matches_regex": "span"}), same)) == len(same)
    wide = {"or_": [{"name_equals": "x"}] * (MAX_STEPS // len(same))}
    with pytest.raises(TooLongError, match="5,010 spans and 100 conditions; at most 500,000"):
        found(wide, same)


NESTED = {
    **{f"{word}_child_has": (word, "child") for word in ("some", "no")},
    **{f"{word}_descendant_has": (word, "descendant") for word in ("some", "no")},
    **{f"{word}_ancestor_has": (word, "ancestor") for word in ("some", "no")},
    "all_children_have": ("all", "child"),
    "all_descendants_have": ("all", "descendant"),
    "all_ancestors_have": ("all", "ancestor"),
}
BOUNDS = {
    **{f"{bound}_child_count": (bound, "child") for bound in ("min", "max")},
    **{f"{bound}_descendant_count": (bound, "descendant") for bound in ("min", "max")},
    **{f"{bound}_depth": (bound, "ancestor") for bound in ("min", "max")},
}


def related(relation: str, at: int, spans: Sequence[SpanRecord], stop: Any) -> Iterator[int]:
    """Children, descendants or ancestors, not beyond spans that match `stop`."""
    own, parent = spans[at].span_id, spans[at].parent_id
    for other, span in enumerate(spans):
        if span.span_id == parent if relation == "ancestor" else span.parent_id == own:
            yield other
            if relation != "child" and not (stop and plainly(stop, other, spans)):
                yield from related(relation, other, spans, stop)


def plainly(written: Any, at: int, spans: Sequence[SpanRecord]) -> bool:
    """The definition, without regard to time."""
    stop = written.get("stop_recursing_when")
    return all(
        one_holds(name, condition, stop, at, spans)
        for name, condition in written.items()
        if name != "stop_recursing_when"
    )


def one_holds(name: str, condition: Any, stop: Any, at: int, spans: Sequence[SpanRecord]) -> bool:
    if name in NESTED:
        quantifier, relation = NESTED[name]
        rows = [plainly(condition, one, spans) for one in related(relation, at, spans, stop)]
        return {"some": any(rows), "all": all(rows), "no": not any(rows)}[quantifier]
    if name in BOUNDS:
        bound, relation = BOUNDS[name]
        count = len(list(related(relation, at, spans, None)))
        return bool(count >= condition if bound == "min" else count <= condition)
    if name == "name_equals":
        return bool(spans[at].name == condition)
    parts = condition if isinstance(condition, list) else [condition]
    rows = [plainly(part, at, spans) for part in parts]
    return {"not_": not all(rows), "and_": all(rows), "or_": any(rows)}[name]


NAMED = st.fixed_dictionaries({"name_equals": st.sampled_from("ab")})
QUERIES = st.recursive(
    NAMED | st.builds(lambda name, n: {name: n}, st.sampled_from([*BOUNDS]), st.integers(0, 2)),
    lambda inner: (
        st.fixed_dictionaries({"not_": inner})
        | st.fixed_dictionaries({"and_": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"or_": st.lists(inner, min_size=1, max_size=2)})
        | st.dictionaries(st.sampled_from([*NESTED]), inner, min_size=1, max_size=2)
        | st.builds(
            lambda name, one, stop: {name: one, "stop_recursing_when": stop},
            st.sampled_from([name for name, (_, of) in NESTED.items() if of != "child"]),
            inner,
            inner,
        )
    ),
    max_leaves=4,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    QUERIES,
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from("ab")), min_size=1, max_size=8),
)
def test_what_is_found_is_what_the_definition_says(
    written: dict[str, Any], shape: list[tuple[int, str]]
) -> None:
    spans = [
        SpanRecord(str(at), str(parent % at) if at and parent else None, name)
        for at, (parent, name) in enumerate(shape)
    ]
    assert matching_spans(query(written), spans) == [
        at for at in range(len(spans)) if plainly(written, at, spans)
    ]


def test_time_grows_with_the_spans_and_not_with_their_depth() -> None:
    def seconds(depth: int) -> float:
        chain = [SpanRecord(str(at), str(at - 1), "x") for at in range(depth)]
        nested: Any = {"name_equals": "y"}
        for _ in range(20):
            nested = {"some_descendant_has": nested, "some_ancestor_has": {"name_equals": "x"}}
        asked, start = query(nested), time.thread_time()
        matching_spans(asked, chain)
        return time.thread_time() - start

    fastest = {depth: min(seconds(depth) for _ in range(3)) for depth in (400, 4_000)}
    assert fastest[4_000] < 40 * fastest[400]

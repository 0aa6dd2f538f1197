"""Random span trees and queries, and where pathgauge means to differ from pydantic-evals on them.

A case is `{"spans": [[id, parent, name, start, end, status, attributes], ...], "query": {...}}`.
Times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from .cases import Case, Json
from .differences import Difference, rewritten

NAMES = ("agent", "chat", "tool search", "db query", "db")
PATTERNS = ("db", "db$", "(?i)DB q", "tool|chat", ".*a", "x*")
STATUSES = ("unset", "ok", "error")
KEYS = ("k", "l", "m")
VALUES: tuple[Json, ...] = (
    *(1, 1.0, True, "1", 0, False, "", "x", [1, 2], [True, 2], [], '{"p": 1}'),
    *("[1, 2]", "[1, 2", "{", {"p": 1}, {"p": 1.0}, {"p": True}, {}, None),
)
SECONDS = (0, 0.1, 0.25, 0.3, 1, 2)
RELATED = (
    *("some_child_has", "all_children_have", "no_child_has"),
    *("some_descendant_has", "all_descendants_have", "no_descendant_has"),
    *("some_ancestor_has", "all_ancestors_have", "no_ancestor_has"),
)
RANGES = ("child_count", "descendant_count", "depth")
MISSING = "missing "


def span_queries(random: Random) -> Case:
    """A tree of up to nine spans, sometimes several, and a query of up to three levels."""
    spans = []
    for number in range(1, random.randrange(2, 10)):
        start = random.randrange(0, 500, 50)
        parent = random.randrange(number) if random.random() < 0.95 else 99
        keys = [key for key in KEYS if random.random() < 0.5]
        spans.append(
            [
                *(number, parent or None, random.choice(NAMES), start),
                start + random.choice((0, 100, 250, 300, 1000, 2500)),
                random.choice(STATUSES),
                {key: random.choice(VALUES[:-1]) for key in keys},
            ]
        )
    return {"spans": spans, "query": _query(random, 3)}


def _query(random: Random, levels: int) -> dict[str, Json]:
    kinds = [_of_name, _of_attributes, _of_keys, _of_status, _of_duration, _of_count]
    if levels > 1:
        kinds += [partial(kind, levels=levels - 1) for kind in (_of_logic, *3 * (_of_related,))]
    found: dict[str, Json] = {}
    for _ in range(random.choice((1, 1, 2))):
        found |= random.choice(kinds)(random)
    for of in (*RANGES, "duration"):
        low, high = f"min_{of}", f"max_{of}"
        if low in found and high in found:
            found[low], found[high] = sorted([found[low], found[high]])
    if "or_" in found:  # which pydantic-evals allows alone only
        return {"or_": found["or_"]}
    return found


def _of_name(random: Random) -> dict[str, Json]:
    form = random.choice(("name_equals", "name_contains", "name_matches_regex"))
    return {form: random.choice(PATTERNS if form == "name_matches_regex" else (*NAMES, "a", "q"))}


def _of_attributes(random: Random) -> dict[str, Json]:
    keys = [random.choice(KEYS) for _ in range(random.choice((1, 1, 2)))]
    return {"has_attributes": {key: random.choice(VALUES) for key in keys}}


def _of_keys(random: Random) -> dict[str, Json]:
    return {"has_attribute_keys": [random.choice((*KEYS, "other"))]}


def _of_status(random: Random) -> dict[str, Json]:
    return {"has_status": random.choice(STATUSES)}


def _of_duration(random: Random) -> dict[str, Json]:
    return {random.choice(("min_duration", "max_duration")): random.choice(SECONDS)}


def _of_count(random: Random) -> dict[str, Json]:
    bound = random.choice(("min", "max"))
    return {f"{bound}_{random.choice(RANGES)}": random.randrange(4)}


def _of_logic(random: Random, levels: int) -> dict[str, Json]:
    form = random.choice(("not_", "and_", "or_"))
    if form == "not_":
        return {form: _query(random, levels)}
    return {form: [_query(random, levels) for _ in range(random.choice((1, 2)))]}


def _of_related(random: Random, levels: int) -> dict[str, Json]:
    found: dict[str, Json] = {random.choice(RELATED): _query(random, levels)}
    if "child" not in next(iter(found)) and random.random() < 0.4:
        found["stop_recursing_when"] = _query(random, 1)
    return found


def _attributes(change: Callable[[Json], Json]) -> Callable[[Case], Case]:
    """Changes every attribute of spans and queries."""

    def of_query(value: Json) -> Json:
        if isinstance(value, list):
            return [of_query(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            name: change(inner) if name == "has_attributes" else of_query(inner)
            for name, inner in value.items()
        }

    return lambda case: {
        "spans": [[*span[:-1], change(span[-1])] for span in case["spans"]],
        "query": of_query(case["query"]),
    }


def _numbers(value: Json) -> Json:
    """The value with booleans as numbers."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return int(value) if isinstance(value, bool) else value


def _with_missing(case: Case) -> Case:
    """Queries for null as queries for an attribute of its own, which spans have that lack the
    other.
    """
    changed = _attributes(
        lambda attributes: {
            **{key: value for key, value in attributes.items() if value is not None},
            **{MISSING + key: True for key, value in attributes.items() if value is None},
        }
    )(case)
    spans = [
        [*span[:-1], {MISSING + key: True for key in KEYS if key not in span[-1]} | span[-1]]
        for span in case["spans"]
    ]
    return {**changed, "spans": spans}


BOOLEANS = Difference(
    "booleans of attributes are numbers",
    "Python says True == 1; JSON has two types.",
    rewritten(_attributes(_numbers)),
)
MISSING_IS_NULL = Difference(
    "an attribute that is missing is null",
    "A query for null asks for an attribute without a value, which OpenTelemetry allows.",
    rewritten(_with_missing),
)

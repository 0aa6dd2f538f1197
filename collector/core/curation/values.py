"""Learns the tightest expected value that accepts all values of an argument in good runs.

A few values that come again and again are an enumeration; the chance that the next value is a new
one is estimated by the share of values that were seen once (Good and Turing). Otherwise the form of
the values is learned: dates, codes, amounts, text.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pathgauge.collector.core.curation.texts import TEXT, forms, pattern
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.matching.matchers import (
    AnyOrder,
    Anything,
    Ignored,
    Near,
    OneOf,
    Pattern,
    holds_matcher,
    is_keyword,
)
from pathgauge.scorers.matching.patterns import MAX_TEXT
from pathgauge.scorers.types import Json

MAX_CHOICES = 20
"""Values of an enumeration."""
MAX_NUMBERS = 8
"""Of an enumeration; more numbers are a range."""
_MAX_NEW = 0.01
"""Of an enumeration, the share of values that were seen once."""
_MIN_DISTINCT = 3
"""Fewer different values show no form."""
_MAX_FORMS = 3
_MAX_KEYS = 40
_MARGIN, _MARGIN_OF_FEW = 0.1, 4
"""Of the range of numbers, on either side: more runs would have shown more extreme ones. Of `n`
numbers at least `_MARGIN_OF_FEW / n`.
"""
_FEW = 40
"""Calls of a step from which its own values are learned, and not those of all calls of the tool."""
MAX_NUMBER = 1e300
"""Ranges of larger numbers cannot be widened."""
_DATED = frozenset({"date", "time", "time of day"})
"""Forms of values that move on, however few of them were seen."""


def type_of(value: Json) -> str:
    """The JSON type, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
    return "an object"


def learned(values: Sequence[Json]) -> Json:
    """An expected value that accepts all these values, of which there is at least one."""
    distinct = {canonical(value): value for value in values}
    if len(distinct) == 1:
        return values[0]
    by_type: dict[str, list[Json]] = {}
    for value in values:
        by_type.setdefault(type_of(value), []).append(value)
    if len(by_type) > 1:
        return _one_of(learned(by_type[kind]) for kind in sorted(by_type))
    return _of_one_type(type_of(values[0]), values)


def arguments(calls: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """The expected arguments of calls. Those that some calls leave out are ignored."""
    names = dict.fromkeys(name for call in calls for name in call)
    return {name: _member(name, calls) for name in names}


def arguments_of_step(
    calls: Sequence[Mapping[str, Json]], of_tool: Mapping[str, Json]
) -> dict[str, Json] | None:
    """The expected arguments of one step; `None`: they cannot be compared. `of_tool`: what is
    learned from all calls of the tool, which knows more about ranges of numbers, and about
    everything that varies if the calls are few.
    """
    own = arguments(calls)
    if any(map(is_keyword, own)) and holds_matcher(own):
        return None
    return {
        name: of_tool[name]
        if isinstance(value, Near) or (len(calls) < _FEW and holds_matcher(value))
        else value
        for name, value in own.items()
    }


def _member(name: str, objects: Sequence[Mapping[str, Json]]) -> Json:
    having = [one[name] for one in objects if name in one]
    return learned(having) if len(having) == len(objects) else Ignored()


def _of_one_type(kind: str, values: Sequence[Json]) -> Json:
    if kind == "an object":
        return _object(values)
    if kind == "text":
        return _text(values)
    choices = _choices(values, MAX_NUMBERS if kind == "a number" else MAX_CHOICES)
    if choices is not None:
        return choices
    if kind == "a number":
        return _near(values) if all(map(_is_usual, values)) else Anything()
    if kind == "a list":
        return _list(values)
    return _one_of(values)


def _object(objects: Sequence[Mapping[str, Json]]) -> Json:
    keys = {key for one in objects for key in one}
    if any(map(is_keyword, keys)):
        # Such keys, as those of queries of MongoDB, have a form in YAML only without matchers.
        return _choices(objects) or Anything()
    return Anything() if len(keys) > _MAX_KEYS else arguments(objects)


def _text(texts: Sequence[str]) -> Json:
    found = forms(texts)
    if not _DATED & set(found):
        choices = _choices(texts)
        if choices is not None:
            return choices
    if max(map(len, texts)) > MAX_TEXT // 2:
        return Anything()
    by_form: dict[str, list[str]] = {}
    for text, form in zip(texts, found, strict=True):
        by_form.setdefault(form, []).append(text)
    if by_form.keys() <= {"words", "text"}:
        by_form = {form: list(texts) for form in sorted(by_form)[:1]}
    if len(by_form) > _MAX_FORMS:
        return Pattern(TEXT if all(text.strip() for text in texts) else "(?s).*")
    return _one_of(Pattern(pattern(form, by_form[form])) for form in sorted(by_form))


def _choices(values: Sequence[Json], most: int = MAX_CHOICES) -> Json:
    """An enumeration, if the values look like one; else `None`."""
    counts = Counter(map(canonical, values))
    once = sum(count == 1 for count in counts.values())
    closed = len(counts) <= most and once <= _MAX_NEW * len(values)
    if not closed and len(counts) >= _MIN_DISTINCT:
        return None
    first = {canonical(value): value for value in reversed(values)}
    return _one_of(sorted(first.values(), key=_place))


def _place(value: Json) -> tuple[float, str]:
    """Numbers by size, other values by their text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (value, "") if is_number else (0, json.dumps(value, sort_keys=True))


def _is_usual(number: float) -> bool:
    return abs(number) <= MAX_NUMBER


def _near(numbers: Sequence[float]) -> Near:
    """All numbers of the range, which is widened a little but not over zero."""
    low, high = min(numbers), max(numbers)
    margin = max(_MARGIN, _MARGIN_OF_FEW / len(numbers)) * (high - low)
    lower = low - margin
    upper = high + margin
    if lower <= 0 <= low:
        lower = low / 2
    if high <= 0 <= upper:
        upper = high / 2
    digits = 3 - math.floor(math.log10(high - low))
    if lower > 0:
        digits = max(digits, 1 - math.floor(math.log10(lower)))
    middle = round((lower + upper) / 2, digits)
    needed = max(abs(middle - low), abs(high - middle))
    around = round(max(needed, round((upper - lower) / 2, digits)), digits + 1)
    if around < needed:
        around = round(around + 10.0 ** -(digits + 1), digits + 1)
    return Near(middle, around, 0)


def _list(lists: Sequence[Sequence[Json]]) -> Json:
    first = AnyOrder(lists[0])
    if all(first.accepts(one) for one in lists):
        return first
    lengths = sorted({len(one) for one in lists})
    if len(lengths) == 1:
        return [learned(column) for column in zip(*lists, strict=True)]
    if len(lengths) > _MAX_FORMS:
        return Anything()
    item = learned([item for one in lists for item in one])
    return OneOf([[item] * length for length in lengths])


def _one_of(values: Iterator[Json] | Sequence[Json]) -> Json:
    """Any of the values; the values of an enumeration among them are merged."""
    flat: list[Json] = []
    for value in values:
        flat += value.values if isinstance(value, OneOf) else [value]
    return flat[0] if len(flat) == 1 else OneOf(flat)

"""Matchers: expected values in a reference that accept more than one actual value.

| in a reference | matcher | accepts |
|---|---|---|
| `{$any: true}` | `Anything` | any value that is present |
| `{$ignore: true}` | `Ignored` | any value; as a value in an object, the key may be absent |
| `{$regex: "[a-z]+"}` | `Pattern` | text that the whole pattern matches |
| `{$near: 12.5, abs: 0.01, rel: 0}` | `Near` | a number within the tolerance |
| `{$any_order: [a, b]}` | `AnyOrder` | a list of these values in any order |
| `{$at_least: {a: 1}}` | `AtLeast` | an object with at least these keys and values |
| `{$one_of: [a, b]}` | `OneOf` | any of these values |
| `{$literal: {$any: true}}` | | exactly this value, although its keys begin with `$` |

Values without matchers are compared as JSON, see `pathgauge.scorers.matching.equality`. Lists and
objects inside matchers may contain matchers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.bipartite import largest_matching
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.matching.value_matchers import (
    Anything,
    Ignored,
    Matcher,
    Near,
    Pattern,
)
from pathgauge.scorers.matching.wording import short
from pathgauge.scorers.types import Json

__all__ = [
    "AnyOrder",
    "Anything",
    "AtLeast",
    "Ignored",
    "Matcher",
    "Near",
    "OneOf",
    "Pattern",
    "holds_matcher",
    "is_keyword",
    "matches",
    "read",
    "written",
]

MAX_ITEMS = 200
"""Items of a list in any order to compare with matchers."""

_PATTERN_COST = 100
"""Most patterns take no longer than comparing two numbers, but one with much backtracking may take
milliseconds.
"""

_SCALAR = (str, int, float, NoneType)


def matches(expected: Json, actual: Json) -> bool:
    """Whether a value matches the expected one, which may be a matcher or contain matchers.

    Raises `TooLongError` if a matcher takes too long, and `RecursionError` for values nested some
    hundreds of levels deep.
    """
    if isinstance(expected, _SCALAR):
        return isinstance(actual, _SCALAR) and canonical(expected) == canonical(actual)
    if isinstance(expected, Matcher):
        return expected.accepts(actual)
    if isinstance(expected, Mapping):
        return (
            isinstance(actual, Mapping)
            and expected.keys() >= actual.keys()
            and _has(actual, expected)
        )
    return (
        isinstance(actual, list | tuple)
        and len(expected) == len(actual)
        and all(map(matches, expected, actual))
    )


def _has(actual: Mapping[str, Json], expected: Mapping[str, Json]) -> bool:
    return all(
        isinstance(value, Ignored) or (key in actual and matches(value, actual[key]))
        for key, value in expected.items()
    )


def holds_matcher(value: Json) -> bool:
    """Whether a value is a matcher or contains one."""
    if isinstance(value, Mapping):
        return any(map(holds_matcher, value.values()))
    if isinstance(value, list | tuple):
        return any(map(holds_matcher, value))
    return isinstance(value, Matcher)


def read(value: Json) -> Json:
    """The value of a reference, with its `$` objects replaced by matchers.

    Raises `ValueError` with the path, what was found and what was expected.
    """
    return _read(value, "")


def written(value: Json) -> Json:
    """The JSON that `read` reads as this value. Raises `ValueError` for a matcher beside or below a
    key with `$`, which has no JSON form.
    """
    if isinstance(value, Matcher):
        return _written_matcher(value)
    if isinstance(value, list | tuple):
        return [written(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    keywords = _keywords(value)
    if not keywords:
        return {key: written(item) for key, item in value.items()}
    if holds_matcher(value):
        raise ValueError(
            f"found a matcher in an object with {keywords[0]}, expected no other matchers"
        )
    return {"$literal": value}


def _written_matcher(matcher: Matcher) -> Json:
    options = {
        field.name: written(getattr(matcher, field.name)) for field in fields(matcher) if field.init
    }
    content = options.pop(next(iter(options))) if options else True
    return {matcher.keyword: content, **options}


@dataclass(frozen=True, eq=False)
class AnyOrder(Matcher):
    """Accepts a list with exactly these items in any order."""

    keyword = "$any_order"

    items: Sequence[Json]

    def __post_init__(self) -> None:
        _check_list(self.items)

    def accepts(self, actual: Json) -> bool:
        """Whether the items can be paired. Raises `TooLongError` if more than `MAX_ITEMS` items
        would have to be compared with matchers.
        """
        if not isinstance(actual, list | tuple) or len(actual) != len(self.items):
            return False
        open_items = [item for item in self.items if holds_matcher(item)]
        literal = Counter(canonical(item) for item in self.items if not holds_matcher(item))
        left = []
        for item in actual:
            key = canonical(item)
            if literal[key]:
                literal[key] -= 1
            else:
                left.append(item)
        return len(left) == len(open_items) and _pair_off(open_items, left)


@dataclass(frozen=True, eq=False)
class AtLeast(Matcher):
    """Accepts an object that has these keys with these values, and possibly others."""

    keyword = "$at_least"

    fields: Mapping[str, Json]

    def __post_init__(self) -> None:
        if not isinstance(self.fields, Mapping):
            raise ValueError(f"found {short(self.fields)}, expected an object")

    def accepts(self, actual: Json) -> bool:
        """Whether the object has all fields."""
        return isinstance(actual, Mapping) and _has(actual, self.fields)


@dataclass(frozen=True, eq=False)
class OneOf(Matcher):
    """Accepts any of these values."""

    keyword = "$one_of"

    values: Sequence[Json]

    def __post_init__(self) -> None:
        _check_list(self.values)
        if not self.values:
            raise ValueError("found an empty list, expected at least one value")

    def accepts(self, actual: Json) -> bool:
        """Whether one of them matches."""
        return any(matches(value, actual) for value in self.values)


_KINDS: Mapping[str, type[Matcher]] = {
    kind.keyword: kind for kind in (Anything, Ignored, Pattern, Near, AnyOrder, AtLeast, OneOf)
}
_LITERAL = "$literal"


def cost(expected: Json) -> int:
    """The maximum cost of one comparison with an expected value; comparing two numbers costs 1."""
    if isinstance(expected, Pattern):
        return _PATTERN_COST
    if isinstance(expected, AnyOrder):
        open_items = [item for item in expected.items if holds_matcher(item)]
        return 1 + len(open_items) * sum(map(cost, open_items))
    if isinstance(expected, Matcher):
        return 1 + sum(
            cost(getattr(expected, field.name)) for field in fields(expected) if field.init
        )
    if isinstance(expected, Mapping):
        return 1 + sum(map(cost, expected.values()))
    if isinstance(expected, list | tuple):
        return 1 + sum(map(cost, expected))
    return 0


def _pair_off(matchers: Sequence[Json], items: Sequence[Json]) -> bool:
    if len(items) > MAX_ITEMS:
        raise TooLongError(
            f"{len(items):,} items of a list in any order; at most {MAX_ITEMS} are compared with"
            " matchers"
        )
    masks = {
        i: sum(1 << j for j, item in enumerate(items) if matches(matcher, item))
        for i, matcher in enumerate(matchers)
    }
    return len(largest_matching(masks)) == len(items)


def _read(value: Json, path: str) -> Json:
    if isinstance(value, list | tuple):
        return [_read(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    dot = f"{path}." if path else ""
    if _keywords(value):
        return _read_matcher(value, dot)
    return {key: _read(item, f"{dot}{key}") for key, item in value.items()}


def _read_matcher(value: Mapping[str, Json], dot: str) -> Json:
    keyword = _keywords(value)[0]
    path = f"{dot}{keyword}"
    options = {key: item for key, item in value.items() if key != keyword}
    kind = _KINDS.get(keyword)
    if kind is None and keyword != _LITERAL:
        known = ", ".join([*_KINDS, _LITERAL])
        raise ValueError(f"{path}: found an unknown key, expected one of {known}")
    if unknown := [str(key) for key in options if kind is not Near or key not in {"abs", "rel"}]:
        raise ValueError(f"{path}: found {', '.join(unknown)} beside it, expected nothing else")
    if kind is None:
        return value[keyword]
    content = _read(value[keyword], path)
    try:
        return _matcher(kind, content, options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _matcher(kind: Callable[..., Matcher], content: Json, options: Mapping[str, Json]) -> Matcher:
    if kind not in {Anything, Ignored}:
        return kind(content, **options)
    if content is not True:
        raise ValueError(f"found {short(content)}, expected true")
    return kind()


def is_keyword(key: str) -> bool:
    """Whether an object with this key is read as a matcher."""
    return key.startswith("$")


def _keywords(value: Mapping[str, Json]) -> list[str]:
    return [key for key in value if isinstance(key, str) and is_keyword(key)]


def _check_list(items: Json) -> None:
    if not isinstance(items, list | tuple):
        raise ValueError(f"found {short(items)}, expected a list")

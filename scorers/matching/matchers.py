"""Matchers: what a reference writes in place of a value when more than one value will do; JSON
comes in, matchers go out, and back.

| written | matcher | matches |
|---|---|---|
| `{$any: true}` | `Anything` | any value that is there |
| `{$ignore: true}` | `Ignored` | any value; a key of an object that has it may be absent |
| `{$regex: "[a-z]+"}` | `Pattern` | text that the whole pattern fits |
| `{$near: 12.5, abs: 0.01, rel: 0}` | `Near` | a number that close |
| `{$any_order: [a, b]}` | `AnyOrder` | a list of these values in any order |
| `{$at_least: {a: 1}}` | `AtLeast` | an object with at least these keys and values |
| `{$one_of: [a, b]}` | `OneOf` | any of these values |
| `{$literal: {$any: true}}` | | exactly this value, though it has keys that begin with `$` |

What holds no matcher is compared as JSON, see `pathgauge.scorers.matching.equality`. Lists and
objects inside of matchers may hold matchers.
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
    short,
)
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
    "matches",
    "read",
    "written",
]

MAX_ITEMS = 200
"""Items of a list in any order that are compared with matchers."""

_COST_OF_PATTERN = 100
"""Most patterns take no longer than two numbers, but one that nearly explodes may take
milliseconds.
"""

_SCALAR = (str, int, float, NoneType)


def matches(expected: Json, actual: Json) -> bool:
    """Whether a value is the expected one, which may be a matcher or hold some.

    Raises `TooLongError` when a matcher cannot tell in time, and `RecursionError` for values nested
    some hundreds of levels deep.
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


def _has(actual: Mapping[str, Json], asked: Mapping[str, Json]) -> bool:
    return all(
        isinstance(value, Ignored) or (key in actual and matches(value, actual[key]))
        for key, value in asked.items()
    )


def holds_matcher(value: Json) -> bool:
    """Whether a value is a matcher, or has one inside."""
    if isinstance(value, Mapping):
        return any(map(holds_matcher, value.values()))
    if isinstance(value, list | tuple):
        return any(map(holds_matcher, value))
    return isinstance(value, Matcher)


def read(value: Json) -> Json:
    """A value as a reference writes it, with matchers in place of the objects that stand for them.

    Raises `ValueError`, which says where it is wrong, what was found and what was expected.
    """
    return _read(value, "")


def written(value: Json) -> Json:
    """The JSON that `read` reads as this value; `ValueError` for a matcher beside or below a key
    with `$`, as it cannot be written.
    """
    if isinstance(value, Matcher):
        shown = {
            field.name: written(getattr(value, field.name)) for field in fields(value) if field.init
        }
        content = shown.pop(next(iter(shown))) if shown else True
        return {value.mark: content, **shown}
    if isinstance(value, Mapping):
        if not _marks(value):
            return {key: written(item) for key, item in value.items()}
        if holds_matcher(value):
            raise ValueError(
                f"found a matcher in an object with {_marks(value)[0]}, expected no other matchers"
            )
        return {"$literal": value}
    return [written(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, eq=False)
class AnyOrder(Matcher):
    """Accepts a list with these items, each as often as here, in any order."""

    mark = "$any_order"

    items: Sequence[Json]

    def __post_init__(self) -> None:
        _check_list(self.items)

    def accepts(self, actual: Json) -> bool:
        """Raises `TooLongError` when more than `MAX_ITEMS` items would have to be compared with
        matchers.
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
    """Accepts an object that has these keys with these values, whatever else it has."""

    mark = "$at_least"

    fields: Mapping[str, Json]

    def __post_init__(self) -> None:
        if not isinstance(self.fields, Mapping):
            raise ValueError(f"found {short(self.fields)}, expected an object")

    def accepts(self, actual: Json) -> bool:
        """Whether none of them is missing or differs."""
        return isinstance(actual, Mapping) and _has(actual, self.fields)


@dataclass(frozen=True, eq=False)
class OneOf(Matcher):
    """Accepts any of these values."""

    mark = "$one_of"

    values: Sequence[Json]

    def __post_init__(self) -> None:
        _check_list(self.values)
        if not self.values:
            raise ValueError("found an empty list, expected at least one value")

    def accepts(self, actual: Json) -> bool:
        """Whether one of them matches."""
        return any(matches(value, actual) for value in self.values)


_KINDS: Mapping[str, type[Matcher]] = {
    kind.mark: kind for kind in (Anything, Ignored, Pattern, Near, AnyOrder, AtLeast, OneOf)
}
_LITERAL = "$literal"


def cost(expected: Json) -> int:
    """What one comparison with an expected value takes at most, where that of two numbers is 1."""
    if isinstance(expected, Pattern):
        return _COST_OF_PATTERN
    if isinstance(expected, AnyOrder):
        open_items = [item for item in expected.items if holds_matcher(item)]
        return 1 + len(open_items) * sum(map(cost, open_items))
    if isinstance(expected, Matcher):
        return 1 + sum(
            cost(getattr(expected, field.name)) for field in fields(expected) if field.init
        )
    if isinstance(expected, Mapping):
        return 1 + sum(map(cost, expected.values()))
    return 1 + sum(map(cost, expected)) if isinstance(expected, list | tuple) else 0


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
    if _marks(value):
        return _read_matcher(value, dot)
    return {key: _read(item, f"{dot}{key}") for key, item in value.items()}


def _read_matcher(value: Mapping[str, Json], dot: str) -> Json:
    mark = _marks(value)[0]
    others = {key: item for key, item in value.items() if key != mark}
    kind = _KINDS.get(mark)
    if kind is None and mark != _LITERAL:
        raise ValueError(
            f"{dot}{mark}: found an unknown key, expected one of {', '.join([*_KINDS, _LITERAL])}"
        )
    if strange := [str(key) for key in others if kind is not Near or key not in {"abs", "rel"}]:
        raise ValueError(
            f"{dot}{mark}: found {', '.join(strange)} beside it, expected nothing else"
        )
    if kind is None:
        return value[mark]
    content = _read(value[mark], f"{dot}{mark}")
    try:
        return _made(kind, content, others)
    except ValueError as error:
        raise ValueError(f"{dot}{mark}: {error}") from error


def _made(kind: Callable[..., Matcher], content: Json, options: Mapping[str, Json]) -> Matcher:
    if kind not in {Anything, Ignored}:
        return kind(content, **options)
    if content is not True:
        raise ValueError(f"found {short(content)}, expected true")
    return kind()


def _marks(value: Mapping[str, Json]) -> list[str]:
    return [key for key in value if isinstance(key, str) and key.startswith("$")]


def _check_list(items: Json) -> None:
    if not isinstance(items, list | tuple):
        raise ValueError(f"found {short(items)}, expected a list")

"""Where in a span a value may live: a place is asked with a span and answers with the value, or
`None`.

Most places are attribute keys, written as plain strings. The classes here are the others: a member
of a JSON attribute, an attribute of a span event, and a list that was flattened over numbered keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import Attributes, Span

_MAX_LEVELS = 16
"""Dots of a flattened key beyond this many belong to its last part."""

_MAX_DIGITS = 5
"""A longer number in a flattened key is no index of a list."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a JSON attribute; `path` leads down by keys of objects and indices of lists."""

    key: str
    path: tuple[str | int, ...]

    def find(self, span: Span) -> Any:
        """The decoded member."""
        raw = span.attributes.get(self.key)
        value = decoded(raw) if raw is not None else None
        for step in self.path:
            if isinstance(step, str):
                value = value.get(step) if isinstance(value, dict) else None
            else:
                value = value[step] if isinstance(value, list) and len(value) > step else None
        return value


@dataclass(frozen=True, slots=True)
class InEvent:
    """An attribute of the first span event of that name that has it."""

    event: str
    key: str

    def find(self, span: Span) -> Any:
        """The attribute as it is."""
        if self.event.encode() not in span.raw:
            return None
        return next(
            (
                event.attributes[self.key]
                for event in span.events
                if event.name == self.event and self.key in event.attributes
            ),
            None,
        )


@dataclass(frozen=True, slots=True)
class Flattened:
    """A list whose leaves were written as attributes of their own: `<prefix>.0.role`,
    `<prefix>.0.content`, `<prefix>.1.role`, ...
    """

    prefix: str

    def find(self, span: Span) -> Any:
        """The list put together again, without what is missing from it; `None` where no key has the
        prefix.
        """
        return unflattened(span.attributes, self.prefix + ".")


@dataclass(frozen=True, slots=True)
class Derived:
    """What has to be worked out from several attributes."""

    derive: Callable[[Span], Any]

    def find(self, span: Span) -> Any:
        """What was worked out."""
        return self.derive(span)


Place = str | Member | InEvent | Flattened | Derived
FieldPaths = tuple[Place, ...]


def value_at(place: Place, span: Span) -> Any:
    """What a span holds at a place."""
    return span.attributes.get(place) if isinstance(place, str) else place.find(span)


def first(
    spans: Iterable[Span],
    places: FieldPaths,
    empty_means_not_captured: frozenset[Place] = frozenset(),
) -> Any:
    """The first value at `places`, in the order of `spans`, that is neither empty text nor a muted
    empty object.
    """
    for span in spans:
        attributes = span.attributes
        for place in places:
            value = attributes.get(place) if isinstance(place, str) else place.find(span)
            if (
                value is not None
                and value != ""
                and not (value == "{}" and place in empty_means_not_captured)
            ):
                return value
    return None


def unflattened(attributes: Attributes, prefix: str) -> Any:
    """The nested value whose leaves lie under keys that begin with `prefix`."""
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            _plant(tree, key[len(prefix) :].split(".", _MAX_LEVELS), value)
    return _as_lists(tree) if tree else None


def _plant(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        below = tree.get(step)
        if not isinstance(below, dict):
            below = tree[step] = {}
        tree = below
    tree.setdefault(path[-1], value)


def _as_lists(value: Any) -> Any:
    """Objects whose keys are all indices are the lists that they came from."""
    if not isinstance(value, dict):
        return value
    if all(key.isdecimal() and key.isascii() and len(key) <= _MAX_DIGITS for key in value):
        return [_as_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _as_lists(below) for key, below in value.items()}


def members(value: Any) -> Mapping[str, Any]:
    """The members of a JSON object, decoded where it is text; none of anything else."""
    value = decoded(value)
    return value if isinstance(value, dict) else {}

"""Field paths: where in a span the value of a field may be.

Most field paths are attribute keys, written as plain strings. The classes here cover the rest: a
member of a JSON attribute, an attribute of a span event, a list that was flattened over numbered
keys, and a value that a function derives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import Attributes, Span

_MAX_LEVELS = 16
"""A flattened key is split at this many dots; further dots belong to its last part."""

_MAX_INDEX_DIGITS = 5
"""A longer number in a flattened key is not a list index."""

JsonPath = tuple[str | int, ...]
"""Keys of objects and indices of lists, outermost first."""


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member of a JSON attribute. With an empty `path`, the decoded attribute itself."""

    key: str
    path: JsonPath

    def find(self, span: Span) -> Any:
        """The decoded member, or `None`."""
        return value_below(span.parsed(self.key, decoded), self.path)


@dataclass(frozen=True, slots=True)
class InEvent:
    """An attribute of the first span event of that name that has it."""

    event: str
    key: str

    def find(self, span: Span) -> Any:
        """The attribute, not decoded, or `None`."""
        if self.event.encode() not in span.raw:
            return None
        for event in span.events:
            if event.name == self.event and self.key in event.attributes:
                return event.attributes[self.key]
        return None


@dataclass(frozen=True, slots=True)
class Flattened:
    """A list whose leaves are separate attributes: `<prefix>.0.role`, `<prefix>.0.content`,
    `<prefix>.1.role`, ...
    """

    prefix: str

    def find(self, span: Span) -> Any:
        """The rebuilt list, without missing elements; `None` if no key has the prefix."""
        return unflattened(span.attributes, self.prefix + ".")


@dataclass(frozen=True, slots=True)
class Derived:
    """A value that a function computes from the span."""

    derive: Callable[[Span], Any]
    reads: tuple[str | JsonMember, ...] = ()
    """The attributes that `derive` reads. Redaction with `content: false` keeps them if the field
    is a name, a number or an id; it ignores them if the field holds content.
    """

    def find(self, span: Span) -> Any:
        """The result of the function."""
        return self.derive(span)


FieldPath = str | JsonMember | InEvent | Flattened | Derived
FieldPaths = tuple[FieldPath, ...]


def may_find(path: FieldPath, keys: Collection[str]) -> bool:
    """Whether a path may lead to a value in attributes with these keys, or outside of them."""
    match path:
        case str():
            return path in keys
        case JsonMember():
            return path.key in keys
        case Flattened():
            return any(key.startswith(path.prefix) for key in keys)
    return True


def value_at(path: FieldPath, span: Span) -> Any:
    """The value that a span has at a field path, or `None`."""
    if isinstance(path, str):
        return span.attributes.get(path)
    return path.find(span)


def first(
    spans: Iterable[Span],
    paths: FieldPaths,
    empty_means_not_captured: frozenset[FieldPath] = frozenset(),
) -> Any:
    """The first value at `paths`, in the order of `spans`.

    Skips empty text, and `{}` at the paths in `empty_means_not_captured`.
    """
    if not paths:
        return None
    for span in spans:
        attributes = span.attributes
        for path in paths:
            value = attributes.get(path) if isinstance(path, str) else path.find(span)
            if value is None or value == "":
                continue
            if value == "{}" and path in empty_means_not_captured:
                continue
            return value
    return None


def first_or_empty(spans: Sequence[Span], paths: FieldPaths) -> Any:
    """As `first`, but `""` if there is nothing except empty text."""
    value = first(spans, paths)
    if value is None and any(value_at(path, span) == "" for span in spans for path in paths):
        return ""
    return value


def value_below(value: Any, path: JsonPath) -> Any:
    """The value that `path` leads to inside decoded JSON, or `None`."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        elif isinstance(value, list) and len(value) > step:
            value = value[step]
        else:
            return None
    return value


def unflattened(attributes: Attributes, prefix: str) -> Any:
    """The nested value whose leaves have keys that start with `prefix`."""
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            _insert(tree, key[len(prefix) :].split(".", _MAX_LEVELS), value)
    if tree:
        return _with_lists(tree)
    return None


def _insert(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        below = tree.get(step)
        if not isinstance(below, dict):
            below = tree[step] = {}
        tree = below
    tree.setdefault(path[-1], value)


def _with_lists(value: Any) -> Any:
    """Turn objects whose keys are all indices back into lists."""
    if not isinstance(value, dict):
        return value
    if all(_is_index(key) for key in value):
        return [_with_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _with_lists(below) for key, below in value.items()}


def _is_index(key: str) -> bool:
    return key.isdecimal() and key.isascii() and len(key) <= _MAX_INDEX_DIGITS


def members(value: Any) -> Mapping[str, Any]:
    """The members of a JSON object, decoded if it is text; empty for any other value."""
    value = decoded(value)
    if isinstance(value, dict):
        return value
    return {}

"""When the oracles that know nothing of calls take two for the same: as Python compares what JSON
became.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Relation = Callable[[Any, Any], bool]


def same_name(one: Any, other: Any) -> bool:
    """The same tool."""
    return bool(one[0] == other[0])


def same_call(one: Any, other: Any) -> bool:
    """The same tool and arguments."""
    return bool(one == other)


def has_arguments(actual: Any, expected: Any) -> bool:
    """The same tool, and each expected argument."""
    return same_name(actual, expected) and all(
        key in actual[1] and actual[1][key] == value for key, value in expected[1].items()
    )


def numbered(sequences: Iterable[list[Any]], relation: Relation) -> list[list[int]]:
    """The sequences as numbers, which are the same where the items are."""
    known: list[Any] = []
    return [[_number(item, known, relation) for item in sequence] for sequence in sequences]


def _number(item: Any, known: list[Any], relation: Relation) -> int:
    for number, other in enumerate(known):
        if relation(item, other):
            return number
    known.append(item)
    return len(known) - 1

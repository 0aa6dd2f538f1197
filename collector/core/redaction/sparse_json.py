"""JSON objects with only some of their members, by path."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pathgauge.collector.core.invocations.dialects.field_paths import JsonPath, value_below


def only_scalars(value: Any, paths: tuple[JsonPath, ...]) -> Any:
    """An object or a list with only the scalars at the paths; `None` if there are none. List
    indices in `paths` must be 0.
    """
    found: Any = [{}] if isinstance(value, list) else {}
    is_empty = True
    for path in paths:
        leaf = value_below(value, path)
        if leaf is not None and not isinstance(leaf, dict | list):
            insert(found, path, leaf)
            is_empty = False
    return None if is_empty else found


def insert(tree: Any, path: JsonPath, leaf: Any) -> None:
    """Put a value at a path, with the objects and lists on the way to it."""
    for step, following in pairwise(path):
        if isinstance(step, int):
            tree = tree[step]
            continue
        tree = tree.setdefault(step, {} if isinstance(following, str) else [{}])
    tree[path[-1]] = leaf

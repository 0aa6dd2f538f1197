"""JSON objects with only some of their members, by path."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pathgauge.collector.core.invocations.dialects.field_paths import JsonPath, value_below


def only_scalars(value: Any, paths: tuple[JsonPath, ...]) -> dict[str, Any] | None:
    """An object with only the scalars at the paths; `None` if there are none. List indices in
    `paths` must be 0.
    """
    found: dict[str, Any] = {}
    for path in paths:
        leaf = value_below(value, path)
        if leaf is not None and not isinstance(leaf, dict | list):
            insert(found, path, leaf)
    return found or None


def insert(tree: Any, path: JsonPath, leaf: Any) -> None:
    """Put a value at a path, with the objects and lists on the way to it."""
    for step, following in pairwise(path):
        if isinstance(step, int):
            tree = tree[step]
            continue
        tree = tree.setdefault(step, {} if isinstance(following, str) else [{}])
    tree[path[-1]] = leaf

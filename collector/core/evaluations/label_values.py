"""Names as metrics have them: cut, so that labels stay short. The label of an alert must lead to
the results of the whole name.
"""

from __future__ import annotations

MAX_SCENARIO_BYTES = 128
"""Longer scenario ids, which come from references, are cut."""
MAX_NAME_BYTES = 64
"""Longer names of agents and versions, which come from senders, are cut."""
_MAX_CHARACTER_BYTES = 4


def label_value(value: str, max_bytes: int = MAX_SCENARIO_BYTES) -> str:
    """Cut to length. Lone surrogates are replaced: UTF-8 cannot encode them, and one would make the
    whole exposition fail.
    """
    return value[:max_bytes].encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def may_be_cut(value: str, max_bytes: int = MAX_SCENARIO_BYTES) -> bool:
    """Whether longer names can have this label."""
    size = len(value.encode("utf-8", "replace"))
    return max_bytes - _MAX_CHARACTER_BYTES < size <= max_bytes


def has_label(name: str, wanted: str, max_bytes: int = MAX_SCENARIO_BYTES) -> bool:
    """Whether `wanted` is the name or its label."""
    return name == wanted or (
        may_be_cut(wanted, max_bytes) and label_value(name, max_bytes) == wanted
    )

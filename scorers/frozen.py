"""Mappings as options of scorers: a mapping comes in, one with a hash goes out."""

from __future__ import annotations

from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FrozenMapping(dict[_Key, _Value]):
    """A mapping that nobody changes, so that it may have a hash; its values need none."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict says that it has none
        return hash(frozenset(self))

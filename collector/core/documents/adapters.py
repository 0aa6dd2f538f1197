"""Adapters, which read and write values of a type as JSON.

Building one takes milliseconds, and a start needs few of them. So each is built when it is first
used.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

T = TypeVar("T")


def adapter(kind: type[T]) -> TypeAdapter[T]:
    """The adapter of a type."""
    return _built(cast(Any, kind))


@lru_cache(maxsize=100)  # a configuration that is read again has new types
def _built(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

"""The field paths that lead to a value, by the keys of a span.

The merged paths of a trace are those of all its dialects, but a span has few of their keys.
Instrumentations write the same keys again and again, so which paths are left is known for nearly
every span.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

from pathgauge.collector.core.invocations.dialects.dialect import Fields
from pathgauge.collector.core.invocations.dialects.field_paths import may_find
from pathgauge.collector.core.invocations.dialects.shape_cache import ShapeCache
from pathgauge.collector.core.otlp.spans import Attributes

_MAX_KEY_SETS = 256

_NAMES = tuple(field.name for field in fields(Fields))


class FieldPlan:
    """The field paths of all dialects of a trace."""

    __slots__ = ("_by_keys", "fields")

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._by_keys: ShapeCache[Fields] = ShapeCache(_MAX_KEY_SETS)

    def of(self, attributes: Attributes) -> Fields:
        """The paths that may have a value in these attributes, or outside of attributes."""
        keys = tuple(attributes)
        found = self._by_keys.get(keys)
        if found is None:
            found = self._by_keys.keep(keys, _narrowed(self.fields, attributes.keys()))
        return found


def _narrowed(merged: Fields, keys: Collection[str]) -> Fields:
    return Fields(
        **{
            name: tuple(path for path in getattr(merged, name) if may_find(path, keys))
            for name in _NAMES
        }
    )

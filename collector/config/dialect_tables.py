"""The section `dialects`: dialects of in-house frameworks that are tables and need no Python.

`pathgauge learn` proposes them. What a table cannot say needs a dialect in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from pathgauge.collector.config.section import Section
from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.core.invocations.dialects import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPath, JsonMember
from pathgauge.collector.core.otlp.spans import Span


class Member(Section):
    """A member of an attribute with JSON."""

    attribute: Annotated[str, Field(min_length=1)]
    member: Annotated[tuple[str | int, ...], Field(min_length=1)]

    def path(self) -> FieldPath:
        """As a field path."""
        return JsonMember(self.attribute, self.member)


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


class DialectTable(Section):
    """One dialect."""

    scopes: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of its instrumentation scopes, or how they begin."""
    kind: str | None = None
    """The attribute that tells what a span represents."""
    kinds: dict[str, Kind] = Field(default_factory=dict)
    """By the value of the attribute `kind`."""
    names: dict[str, Kind] = Field(default_factory=dict)
    """By how the name of a span begins, for spans that `kinds` does not know."""
    fields: dict[str, Annotated[tuple[str | Member, ...], BeforeValidator(_listed)]] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _check(self) -> DialectTable:
        unknown = sorted(self.fields.keys() - Fields.__dataclass_fields__.keys())
        if unknown:
            known = Fields.__dataclass_fields__
            hint = did_you_mean(unknown[0], known) or f"; the fields are {', '.join(known)}"
            raise ValueError(f"fields: found {', '.join(unknown)}, which no dialect has{hint}")
        if not self.kinds and not self.names:
            raise ValueError("found neither kinds nor names, so that no span would be read")
        if self.kinds and self.kind is None:
            raise ValueError("found kinds without kind, the attribute with their values")
        return self

    def dialect(self, name: str) -> Dialect:
        """The dialect that the reader uses."""
        scopes, attribute = self.scopes, self.kind
        kinds, names = dict(self.kinds), dict(self.names)

        def kind(span: Span) -> Kind | None:
            stated = span.attributes.get(attribute) if attribute is not None else None
            found = kinds.get(str(stated)) if stated is not None else None
            if found is not None:
                return found
            begins = (kind for prefix, kind in names.items() if span.name.startswith(prefix))
            return next(begins, "other")

        return Dialect(
            name=name,
            scopes=scopes,
            matches=lambda span: span.scope.name.startswith(scopes),
            kind=kind,
            reads=() if attribute is None else (attribute,),
            fields=Fields(**{field: _paths(paths) for field, paths in self.fields.items()}),
        )


def _paths(paths: tuple[str | Member, ...]) -> tuple[FieldPath, ...]:
    return tuple(path if isinstance(path, str) else path.path() for path in paths)


def dialects_of(tables: Mapping[str, DialectTable]) -> tuple[Dialect, ...]:
    """The dialects of the section, by name."""
    return tuple(table.dialect(name) for name, table in tables.items())

"""Docstrings of attributes are read from the source of a class and of its parents."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pathgauge.collector.api.attribute_docstrings import (
    attribute_docstrings,
    describe_properties,
)


@dataclass
class Parent:
    limit: int = 0
    """In bytes."""
    kept: bool = False
    """Of the parent."""


@dataclass
class Child(Parent):
    kept: bool = True
    """Of the child,
    on two lines.
    """
    plain: int = 0


class Described(BaseModel):
    model_config = ConfigDict(json_schema_extra=describe_properties)

    first: int
    """From the docstring."""
    second: Annotated[int, Field(description="From the field.")]
    """Not this one."""
    third: int


def test_a_class_has_its_own_docstrings_and_those_of_its_parents_in_one_line_each() -> None:
    expected = {"limit": "In bytes.", "kept": "Of the child, on two lines."}
    assert dict(attribute_docstrings(Child)) == expected


def test_a_class_without_source_has_none() -> None:
    assert dict(attribute_docstrings(make_dataclass("Made", ["limit"]))) == {}


def test_a_json_schema_has_the_docstrings_unless_a_field_describes_itself() -> None:
    properties = Described.model_json_schema()["properties"]
    found = {name: one.get("description") for name, one in properties.items()}
    assert found == {"first": "From the docstring.", "second": "From the field.", "third": None}

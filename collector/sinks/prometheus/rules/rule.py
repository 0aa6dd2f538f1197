"""A rule as Prometheus has it: a series recorded under a name, or an alert; several in a group,
evaluated one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["critical", "warning", "info", "none"]


@dataclass(frozen=True, slots=True)
class Record:
    """An expression whose value is kept under a name: `level:metric:operation`, where the level
    names the labels that tell series apart.

    Beside these every series keeps `job`, and `tenant` where there is one.
    """

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert:
    """An expression that should have no value."""

    name: str
    expr: str
    severity: Severity
    wait: str
    """How long it must be true without a break; `0s`: not at all."""
    summary: str
    """What is wrong, the same words every time."""
    description: str
    """What exactly, a template that Prometheus fills."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Beside those of the expression and the severity."""
    keeps: bool = False
    """Whether it goes on for a while when the expression ceases to be true, as one that moves with
    every score would flap.
    """


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated together."""

    name: str
    rules: tuple[Record | Alert, ...]
    slow: bool = False
    """Whether it reads hours and days, so that it need not be evaluated as often as others."""

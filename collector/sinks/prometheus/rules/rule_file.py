"""The whole file: choices in, its groups and its text out."""

from __future__ import annotations

from collections.abc import Iterable

from pathgauge.collector.sinks.prometheus.rules import (
    budgets,
    collector_health,
    coverage,
    rendering,
    scores,
    version_regressions,
)
from pathgauge.collector.sinks.prometheus.rules.options import Choices, checked
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group

_PARTS = (
    scores.groups,
    version_regressions.groups,
    budgets.groups,
    coverage.groups,
    collector_health.groups,
)


def choose(base: Choices, severities: Iterable[str], waits: Iterable[str]) -> Choices:
    """`base` with severities and times as people write them, `NAME=VALUE`. Raises ChoiceError."""
    return checked(
        base,
        {rule.name for group in groups(base) for rule in group.rules if isinstance(rule, Alert)},
        severities,
        waits,
    )


def groups(choices: Choices) -> tuple[Group, ...]:
    """The groups, for these choices."""
    return tuple(group for part in _PARTS for group in part(choices))


def to_yaml(choices: Choices) -> str:
    """The text of the file."""
    return rendering.to_yaml(groups(choices), choices)

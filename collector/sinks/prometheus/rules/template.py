"""Reads `template.yml`, repeats the rules of each `for_each` and replaces every `${name}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Rule: TypeAlias = dict[str, Any]

_FILE = Path(__file__).with_name("template.yml")
_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
"""Only with braces: `$labels`, `$value` and `$1` are left to Prometheus."""


@cache
def load() -> dict[str, Any]:
    """The parsed template; callers must not change it."""
    template: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return template


def alert_names() -> set[str]:
    """The names of all alerts."""
    rules = [rule for group in load()["groups"] for rule in group["rules"]]
    repeated = [inner for rule in rules for inner in rule.get("rules", ())]
    return {rule["alert"] for rule in rules + repeated if "alert" in rule}


def expand(rules: Iterable[Rule], variables: Mapping[str, object]) -> Iterator[Rule]:
    """The rules with `for_each` repeated and placeholders replaced."""
    for rule in rules:
        if "for_each" not in rule:
            yield {key: fill(value, variables) for key, value in rule.items()}
            continue
        for more in rule["for_each"]:
            yield from expand(rule["rules"], {**variables, **more})


def fill(node: Any, variables: Mapping[str, object]) -> Any:
    """A text, or the texts of a mapping, with placeholders replaced. Variables may contain
    placeholders themselves. Raises KeyError for an unknown name.
    """
    if isinstance(node, dict):
        return {key: fill(value, variables) for key, value in node.items()}
    return _PLACEHOLDER.sub(lambda found: fill(str(variables[found[1]]), variables), node)

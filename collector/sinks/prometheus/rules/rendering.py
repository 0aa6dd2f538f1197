"""Groups of rules and the choices of an operator come in, the text of a rule file goes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from pathgauge.collector.sinks.prometheus.rules.options import Choices, seconds
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group, Record

_HEAD = """\
# Written by `pathgauge rules`; change it there, not here. It serves every configuration:
# thresholds, objectives and intervals are series. docs/alerting.md explains it.
"""
_SLOW = "2m"


class _Dumper(yaml.SafeDumper):
    """Keeps the lines of long texts."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)


def to_yaml(groups: Iterable[Group], choices: Choices) -> str:
    """The rule file."""
    document = {"groups": [_group(group, choices) for group in groups]}
    return _HEAD + yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=100_000, allow_unicode=True
    )


def _group(group: Group, choices: Choices) -> dict[str, Any]:
    rules = [
        _record(rule) if isinstance(rule, Record) else _alert(rule, choices) for rule in group.rules
    ]
    return {
        "name": group.name,
        "interval": max(choices.interval, _SLOW, key=seconds) if group.slow else choices.interval,
        "rules": rules,
    }


def _record(rule: Record) -> dict[str, Any]:
    return {"record": rule.name, "expr": rule.expr} | (
        {"labels": dict(rule.labels)} if rule.labels else {}
    )


def _alert(rule: Alert, choices: Choices) -> dict[str, Any]:
    severity = (
        choices.severities.get(rule.name) or choices.severities.get(rule.severity) or rule.severity
    )
    wait = choices.waits.get(rule.name) or (
        choices.waits.get("", rule.wait) if rule.wait != "0s" else "0s"
    )
    return {
        "alert": rule.name,
        "expr": rule.expr,
        **({"for": wait} if wait != "0s" else {}),
        **(
            {"keep_firing_for": choices.keep_firing_for}
            if rule.keeps and choices.keep_firing_for != "0s"
            else {}
        ),
        "labels": {"severity": severity, **rule.labels},
        "annotations": dict(_annotations(rule, choices)),
    }


def _annotations(rule: Alert, choices: Choices) -> Iterator[tuple[str, str]]:
    yield "summary", rule.summary
    yield "description", rule.description
    yield "runbook_url", f"{choices.runbook_url}/{rule.name}.md"
    if choices.dashboard_url:
        yield "dashboard_url", choices.dashboard_url

"""The options of `pathgauge rules`, checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pathgauge.collector.sinks.prometheus.rules.template import alert_names

RUNBOOKS = "https://github.com/pathgauge/pathgauge/blob/main/docs/runbooks"
"""Where the runbook pages are published."""
RESULTS = "http://localhost:9464"
"""The pages of a collector on the machine of the browser."""
SEVERITIES = ("critical", "warning", "info", "none")

_DURATION = re.compile(r"(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_UNITS_S = (86_400, 3_600, 60, 1)
_LOOKBACK_S = 300
"""Prometheus ignores samples older than this: rules could not read the records of other rules."""
_NAME = re.compile(r"[A-Za-z0-9_.:/-]+", re.ASCII)


class ChoiceError(ValueError):
    """An option that no rule file can have."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What differs between sites. Everything else in the rules is the same everywhere."""

    job: str = "pathgauge"
    """The label `job` that Prometheus gives the collectors."""
    runbook_url: str = RUNBOOKS
    """The folder of the runbook pages, without a trailing slash."""
    dashboard_url: str | None = None
    results_url: str = RESULTS
    """Where browsers reach the pages of the collector, without a trailing slash."""
    interval: str = "30s"
    """How often rules are evaluated."""
    keep_firing_for: str = "10m"
    min_samples: int = 20
    """Means of fewer scores are ignored."""
    sigmas: float = 4.0
    """The number of standard errors beyond which a deviation is not chance. High, because means of
    few scores have long tails and there are many means.
    """
    severities: Mapping[str, str] = field(default_factory=dict)
    """Replacements, by alert name or by default severity."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """Replacements of `for`, by alert name; the key `""` is for all alerts."""


def choose(base: Choices, severities: Iterable[str], waits: Iterable[str]) -> Choices:
    """`base` with severities and `for` times written as `NAME=VALUE`. Raises ChoiceError."""
    alerts = alert_names()
    _check(_NAME, base.job, f"--job: found {base.job!r}, expected letters, digits and any of _.:/-")
    chosen = dict(_pair(text, "--severity", {*alerts, *SEVERITIES}) for text in severities)
    for severity in chosen.values():
        _check(_NAME, severity, f"--severity: found {severity!r}, expected a word such as page")
    waits_by_name = dict(_wait(text, alerts) for text in waits)
    _check_duration("--interval", base.interval)
    _check_duration("--keep-firing-for", base.keep_firing_for)
    for duration in waits_by_name.values():
        _check_duration("--for", duration)
    if not 0 < seconds(base.interval) < _LOOKBACK_S:
        raise ChoiceError(
            f"--interval: found {base.interval!r}, expected more than 0s and less than"
            f" {_LOOKBACK_S // 60}m"
        )
    return replace(
        base,
        runbook_url=base.runbook_url.rstrip("/"),
        results_url=base.results_url.rstrip("/"),
        severities=chosen,
        waits=waits_by_name,
    )


def seconds(duration: str) -> int:
    """The length of a duration in the notation of Prometheus; 0 if it is malformed."""
    found = _DURATION.fullmatch(duration)
    if found is None:
        return 0
    amounts = (int(amount or 0) for amount in found.groups())
    return sum(amount * unit for amount, unit in zip(amounts, _UNITS_S, strict=True))


def _wait(text: str, alerts: Collection[str]) -> tuple[str, str]:
    """`NAME=VALUE`, or a value for all alerts."""
    if "=" not in text:
        return "", text
    return _pair(text, "--for", alerts)


def _pair(text: str, option: str, names: Collection[str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in names:
        raise ChoiceError(
            f"{option}: found {name!r}, expected NAME=VALUE with one of {', '.join(sorted(names))}"
        )
    return name, value


def _check_duration(option: str, duration: str) -> None:
    problem = f"{option}: found {duration!r}, expected a duration such as 30s or 1h30m"
    _check(_DURATION, duration, problem)


def _check(pattern: re.Pattern[str], text: str, problem: str) -> None:
    if not pattern.fullmatch(text):
        raise ChoiceError(problem)

"""What operators choose about the rules: words of the command line come in, checked choices go out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

_DURATION = re.compile(r"(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_LOOKBACK_S = 300
"""Prometheus forgets what is older: rules could not read what others recorded."""
_NAME = re.compile(r"[A-Za-z0-9_.:/-]+", re.ASCII)
SEVERITIES = ("critical", "warning", "info", "none")


class ChoiceError(ValueError):
    """A choice that no rule file can have."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What differs between sites. The rest of the rules is the same everywhere."""

    job: str = "pathgauge"
    """The value of the label `job` that Prometheus gives the collectors."""
    runbook_url: str = "docs/runbooks"
    """What comes before the name of a page."""
    dashboard_url: str | None = None
    interval: str = "30s"
    """How often rules are evaluated."""
    keep_firing_for: str = "10m"
    min_samples: int = 20
    """Fewer scores than these say nothing."""
    sigmas: float = 4.0
    """By how many standard errors a mean must be off before that is no chance. Means of few scores
    have long tails, and there are many.
    """
    min_drop: float = 0.05
    """A smaller fall is no regression, however certain; of scores from 0 to 1."""
    severities: Mapping[str, str] = field(default_factory=dict)
    """Other words, by alert or by severity."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """Other times until an alert fires, by alert; that of `""` is for all."""


def checked(
    base: Choices, alerts: Collection[str], severities: Iterable[str], waits: Iterable[str]
) -> Choices:
    """`base` with what was written as `NAME=VALUE`, where the names are those of `alerts`. Raises
    ChoiceError.
    """
    _check(_NAME, base.job, f"--job: found {base.job!r}, expected letters, digits and any of _.:/-")
    chosen = dict(_pair(text, "--severity", {*alerts, *SEVERITIES}) for text in severities)
    for severity in chosen.values():
        _check(_NAME, severity, f"--severity: found {severity!r}, expected a word such as page")
    lasting = dict(_pair(text, "--for", alerts) if "=" in text else ("", text) for text in waits)
    durations = [
        ("--interval", base.interval),
        ("--keep-firing-for", base.keep_firing_for),
        *(("--for", wait) for wait in lasting.values()),
    ]
    for option, duration in durations:
        _check(
            _DURATION,
            duration,
            f"{option}: found {duration!r}, expected a duration such as 30s or 1h30m",
        )
    if not 0 < seconds(base.interval) < _LOOKBACK_S:
        raise ChoiceError(
            f"--interval: found {base.interval!r}, expected more than nothing and less than"
            f" {_LOOKBACK_S // 60}m"
        )
    return replace(base, runbook_url=base.runbook_url.rstrip("/"), severities=chosen, waits=lasting)


def seconds(duration: str) -> int:
    """Of a duration as Prometheus writes it; 0 of anything else."""
    found = _DURATION.fullmatch(duration)
    return (
        sum(
            int(amount or 0) * unit
            for amount, unit in zip(found.groups(), (86400, 3600, 60, 1), strict=True)
        )
        if found
        else 0
    )


def _pair(text: str, option: str, names: Collection[str]) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if name not in names:
        raise ChoiceError(
            f"{option}: found {name!r}, expected NAME=VALUE with one of {', '.join(sorted(names))}"
        )
    return name, value


def _check(pattern: re.Pattern[str], text: str, problem: str) -> None:
    if not pattern.fullmatch(text):
        raise ChoiceError(problem)

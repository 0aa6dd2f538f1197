"""Rules about versions of an agent: the newest one scores worse than the one before it, in the same
scenario.
"""

from __future__ import annotations

from collections.abc import Iterator

from pathgauge.collector.sinks.prometheus.rules.expressions import (
    AGENT,
    SERIES,
    SIGN,
    VERSION,
    WHO,
    lines,
    summed,
)
from pathgauge.collector.sinks.prometheus.rules.options import Choices
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group, Record

_FIRST_SEEN = "pathgauge_agent_version_first_seen_timestamp_seconds"
_SEEN = "agent_version:pathgauge_agent_version_first_seen_timestamp_seconds:min"
_NEWEST = "agent_version:pathgauge_agent_version:newest"
_PREVIOUS = "agent_version_scenario_metric:pathgauge_agent_version:previous"
_SCORE = "agent_version_scenario_metric:pathgauge_score"
_DROP, _DROP_ERROR, _POOLED = (
    f"{_SCORE}:{name}" for name in ("version_drop", "version_drop_error", "version_pooled")
)
_BEFORE = "agent_scenario_metric:pathgauge_score"


def groups(choices: Choices) -> Iterator[Group]:
    """The rules, what is slow apart."""
    yield Group(
        "pathgauge.versions.rules",
        (*_versions(choices), *_baselines(choices), *_drops()),
        slow=True,
    )
    yield Group("pathgauge.versions.alerts", (_regression(choices),))


def _versions(choices: Choices) -> Iterator[Record]:
    """Which version is which. What has left the collector, as nobody saw it for a day, is
    remembered for a week.

    The previous one is the newest of the others that has enough scores: one that was replaced after
    a few runs is passed over.
    """
    by_version = f"min by ({VERSION}) "
    yield Record(
        _SEEN,
        lines(
            f"{by_version}({_FIRST_SEEN})", f"or {by_version}(last_over_time({_FIRST_SEEN}[7d:1h]))"
        ),
    )
    yield Record(_NEWEST, f"topk by ({AGENT}) (1, {_SEEN})")
    many = f"{summed(f'{_SCORE}_count:increase1h', '7d')} >= {choices.min_samples}"
    yield Record(
        _PREVIOUS,
        f"topk by ({SERIES}) (1, 0 * ({many}) + on ({VERSION}) group_left () ({_SEEN} unless"
        f" {_NEWEST}))",
    )


def _baselines(choices: Choices) -> Iterator[Record]:
    """All scores of the newest version in a day, and of the previous one in a week, whose name
    becomes a label of its own.

    A newest version without scores in the last hour does not count: after a rollback it has none.
    """
    hour, day = f"{_SCORE}_count:increase1h", f"{_SCORE}_count:increase1d"
    yield Record(day, summed(hour, "1d"))
    yield Record(f"{_SCORE}_sum:increase1d", summed(f"{_SCORE}_sum:increase1h", "1d"))
    for part in ("sum", "count"):
        longest = lines(
            f"({_SCORE}_{part}:increase1d and {day} > {hour}", f"or {_SCORE}_{part}:increase1h)"
        )
        enough = f"and ({day} >= {choices.min_samples} or {hour} >= {choices.min_samples})"
        newest = f"and on ({VERSION}) {_NEWEST}"
        yield Record(
            f"{_SCORE}_{part}:newest_version", lines(longest, enough, f"and {hour} > 0", newest)
        )
        week = lines(summed(f"{_SCORE}_{part}:increase1h", "7d"), f"and {_PREVIOUS}")
        named = f'label_replace({week}, "previous_version", "$1", "agent_version", "(.*)")'
        many = f" >= {choices.min_samples}" if part == "count" else ""
        yield Record(
            f"{_BEFORE}_{part}:previous_version",
            f"sum by ({SERIES}, previous_version) ({named}){many}",
        )


def _drops() -> Iterator[Record]:
    total, count = f"{_SCORE}_sum:newest_version", f"{_SCORE}_count:newest_version"
    total_before, count_before = (
        f"{_BEFORE}_sum:previous_version",
        f"{_BEFORE}_count:previous_version",
    )
    on = f"on ({SERIES}) group_left (previous_version)"
    fall = lines(f"-({total} / {count}", f"- {on} ({total_before} / {count_before}))")
    yield Record(_DROP, lines(fall, f"* on (job, metric) group_left () {SIGN}"))
    pooled = lines(f"({total} + {on} {total_before})", f"/ ({count} + {on} {count_before})")
    yield Record(_POOLED, f"clamp({pooled}, 0, 1)")
    yield Record(
        _DROP_ERROR,
        lines(f"sqrt({_POOLED} * (1 - {_POOLED})", f"* (1 / {count} + {on} 1 / {count_before}))"),
    )


def _regression(choices: Choices) -> Alert:
    return Alert(
        "PathgaugeVersionRegression",
        lines(
            f"{_DROP} > {choices.min_drop:g}", f"and {_DROP} > {choices.sigmas:g} * {_DROP_ERROR}"
        ),
        "warning",
        "10m",
        "A new version of an agent scores worse than the version before it.",
        f'{WHO}: version {{{{ $labels.agent_version }}}} is {{{{ printf "%.3f" $value }}}} worse'
        " than version {{ $labels.previous_version }}, from 0 to 1, which is more than"
        " chance.",
        keeps=True,
    )

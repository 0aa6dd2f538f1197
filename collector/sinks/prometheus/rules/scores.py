"""Rules about scores: below their threshold, and lower than before.

A mean over few scores is off by chance. All three alerts wait until it is off by more than `sigmas`
standard errors, which are bounded from above, so that a mean that has not changed is hardly ever so
far off, whatever the scores look like.
"""

from __future__ import annotations

from collections.abc import Iterator

from pathgauge.collector.sinks.prometheus.rules.expressions import (
    SERIES,
    SIGN,
    VERSION_SERIES,
    WHO,
    added,
    lines,
    standard_error,
    summed,
)
from pathgauge.collector.sinks.prometheus.rules.options import Choices
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group, Record

_WINDOW = "agent_scenario_metric:pathgauge_score_window"
_THRESHOLD = "agent_scenario_metric:pathgauge_threshold:max"
_SUM, _COUNT = (
    "agent_scenario_metric:pathgauge_score_sum",
    "agent_scenario_metric:pathgauge_score_count",
)
_SHORTFALL, _SHORTFALL_ERROR, _DROP, _DROP_ERROR, _POOLED = (
    f"agent_scenario_metric:pathgauge_score:{name}"
    for name in ("shortfall", "shortfall_error", "drop", "drop_error", "pooled")
)
_FROM_0_TO_1 = 'and on (job, metric) pathgauge_metric_info{min="0", max="1"}'
_WITH_SIGN = f"* on (job, metric) group_left () {SIGN}"


def groups(choices: Choices) -> Iterator[Group]:
    """The rules, what is slow apart."""
    yield Group("pathgauge.scores.rules", (*_windows(choices), *_hours()))
    yield Group(
        "pathgauge.scores.history.rules",
        (*_days(), *_recent(choices), *_day(choices), *_drops(choices)),
        slow=True,
    )
    yield Group(
        "pathgauge.scores.alerts", (_below(choices), _regression(choices), _unbounded_regression())
    )


def _windows(choices: Choices) -> Iterator[Record]:
    """The recent scores of all collectors, in the scale of the metric, and how far they are on the
    wrong side of the threshold.

    Only of metrics from 0 to 1 is the spread bounded; of others the number of samples alone counts.
    """
    weighed = "pathgauge_score_window_mean * pathgauge_score_window_samples"
    higher, lower = (
        f'max by (job, metric) (pathgauge_metric_info{{direction="{word}_is_better"}})'
        for word in ("higher", "lower")
    )
    samples, labels = f"{_WINDOW}:samples", {"window": "recent"}
    yield Record(SIGN, lines(higher, f"or -{lower}"))
    yield Record(_THRESHOLD, f"max by ({SERIES}) (pathgauge_threshold)")
    yield Record(samples, f"sum by ({SERIES}) (pathgauge_score_window_samples)")
    yield Record(f"{_WINDOW}:mean", lines(f"sum by ({SERIES}) ({weighed})", f"/ {samples}"))
    yield Record(_SHORTFALL, lines(f"({_THRESHOLD} - {_WINDOW}:mean)", _WITH_SIGN), labels)
    error = lines(_threshold_error(samples), _FROM_0_TO_1, f"or 0 * {samples}")
    yield Record(
        _SHORTFALL_ERROR, lines(f"({error})", f"and {samples} >= {choices.min_samples}"), labels
    )


def _threshold_error(samples: str) -> str:
    """Of a mean that is at the threshold. One at an end of the range is taken for one a little
    inside, as it leaves no room for chance.
    """
    return standard_error(f"clamp({_THRESHOLD}, 0.02, 0.98)", samples)


def _hours() -> Iterator[Record]:
    for part in ("sum", "count"):
        by_version = f"agent_version_scenario_metric:pathgauge_score_{part}:increase1h"
        yield Record(by_version, added(VERSION_SERIES, f"pathgauge_score_{part}", "1h"))
        yield Record(
            f"agent_scenario_metric:pathgauge_score_{part}:increase1h",
            f"sum by ({SERIES}) ({by_version})",
        )


def _days() -> Iterator[Record]:
    for name in (_SUM, _COUNT):
        yield Record(f"{name}:increase1d", summed(f"{name}:increase1h", "1d"))


def _recent(choices: Choices) -> Iterator[Record]:
    """The last hour where it has scores enough, else the last day."""
    hour, day = (f"{_COUNT}:increase{window} >= {choices.min_samples}" for window in ("1h", "1d"))
    for name in (_SUM, _COUNT):
        yield Record(
            f"{name}:recent",
            lines(f"({name}:increase1h and {hour})", f"or ({name}:increase1d and {day})"),
        )


def _day(choices: Choices) -> Iterator[Record]:
    """How far the last day was on the wrong side, where the recent scores still are: many scores
    show a small shortfall.
    """
    count, labels = f"{_COUNT}:increase1d", {"window": "day"}
    shortfall = lines(f"({_THRESHOLD} - {_SUM}:increase1d / {count})", _WITH_SIGN, _FROM_0_TO_1)
    still = f'and ignoring (window) {_SHORTFALL}{{window="recent"}} > 0'
    yield Record(_SHORTFALL, lines(shortfall, still), labels)
    yield Record(
        _SHORTFALL_ERROR,
        lines(_threshold_error(count), f"and {count} >= {choices.min_samples}"),
        labels,
    )


def _drops(choices: Choices) -> Iterator[Record]:
    """How much lower than the day before, and than the day a week ago; with the standard error
    where both have scores enough.
    """
    for baseline, window, offset in (("day", "recent", "1d"), ("week", "increase1d", "7d")):
        total, count = f"{_SUM}:{window}", f"{_COUNT}:{window}"
        total_before, count_before = (
            f"{_SUM}:increase1d offset {offset}",
            f"{_COUNT}:increase1d offset {offset}",
        )
        labels = {"baseline": baseline}
        yield Record(
            _DROP,
            lines(f"({total_before} / {count_before}", f"- {total} / {count})", _WITH_SIGN),
            labels,
        )
        pooled = lines(f"({total} + {total_before})", f"/ ({count} + {count_before})")
        yield Record(_POOLED, f"clamp({pooled}, 0, 1)", labels)
        mean = f'{_POOLED}{{baseline="{baseline}"}}'
        inverse = f"ignoring (baseline) (1 / {count} + 1 / {count_before})"
        enough = [f"and {number} >= {choices.min_samples}" for number in (count, count_before)]
        yield Record(
            _DROP_ERROR, lines(f"sqrt({mean} * (1 - {mean}) * {inverse})", *enough), labels
        )


def _below(choices: Choices) -> Alert:
    return Alert(
        "PathgaugeScoreBelowThreshold",
        f"{_SHORTFALL} > {choices.sigmas:g} * {_SHORTFALL_ERROR}",
        "warning",
        "10m",
        "A score is on the wrong side of its threshold.",
        f'The mean of {WHO} ({{{{ $labels.window }}}}) misses its threshold by {{{{ printf "%.3f"'
        " $value }}, which is more than chance.",
        keeps=True,
    )


def _regression(choices: Choices) -> Alert:
    return Alert(
        "PathgaugeScoreRegression",
        lines(
            f"{_DROP} > {choices.min_drop:g}", f"and {_DROP} > {choices.sigmas:g} * {_DROP_ERROR}"
        ),
        "warning",
        "15m",
        "A scenario scores worse than it did before.",
        f'{WHO} is {{{{ printf "%.3f" $value }}}} worse than a {{{{ $labels.baseline }}}} ago, from'
        " 0 to 1, which is more than chance.",
        keeps=True,
    )


def _unbounded_regression() -> Alert:
    """Of metrics without an end, such as seconds, the collector alone knows how they vary: it
    exports a p-value.
    """
    worst, baseline, p_value = (
        f"max by ({SERIES}, baseline) (pathgauge_{name})"
        for name in ("regression_score", "baseline_score", "regression_p_value")
    )
    return Alert(
        "PathgaugeScoreRegression",
        lines(
            f"(1 - {worst} / {baseline})",
            f"{_WITH_SIGN} > 0.1",
            f"and {p_value} < 0.0001",
            f"unless on ({SERIES}) {_COUNT}:increase1h",
        ),
        "warning",
        "15m",
        "A scenario scores worse than it did before.",
        f"{WHO} is worse {{{{ if lt $value 1e9 }}}}by {{{{ $value | humanizePercentage }}}} than"
        " its baseline{{ else }}than its baseline of 0{{ end }}, that of the {{"
        " $labels.baseline }} before.",
        {"compared_by": "collector"},
        keeps=True,
    )

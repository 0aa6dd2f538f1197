"""Rules about what is not scored: silence, traffic without reference, missing content, scorers and
judges that fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from pathgauge.collector.sinks.prometheus.rules.expressions import (
    AGENT,
    AGENT_NAME,
    added,
    lines,
    standard_error,
    summed,
)
from pathgauge.collector.sinks.prometheus.rules.options import Choices
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group, Record

_SCENARIO = "job, tenant, scenario"
_INVOCATIONS, _EVALUATIONS, _SCORED = (
    "agent:pathgauge_invocations",
    "agent:pathgauge_evaluations",
    "agent:pathgauge_evaluations_scored",
)
_DROP, _DROP_ERROR, _POOLED = (
    f"agent:pathgauge_coverage:{name}" for name in ("drop", "drop_error", "pooled")
)
_PERCENT = "{{ $value | humanizePercentage }}"
_MIN_DROP = 0.1
_JUDGE_FAILURES = "judge_(timeout|unavailable|rejected|refused|malformed|overloaded|undecided)"
"""The reasons for which a judge was to judge, and could not."""
_LACKS = "content_missing|truncated|orphan_spans|missing_root|dropped_attributes|dropped_spans|clock_skew"
"""The flags that somebody can mend. The others are how an instrumentation is, or were asked for."""


def groups(choices: Choices) -> Iterator[Group]:
    """The rules, what is slow apart."""
    yield Group("pathgauge.coverage.rules", tuple(_counts()))
    yield Group("pathgauge.coverage.history.rules", tuple(_drops(choices)), slow=True)
    alerts = (
        _silence(choices),
        _unmatched(choices),
        _drop(choices),
        _content(choices),
        _telemetry(choices),
        _errors(),
        *_judges(),
    )
    yield Group("pathgauge.coverage.alerts", alerts)


def _counts() -> Iterator[Record]:
    """Without judges: what share of an agent's traffic these see is a choice, and they have alerts
    of their own.
    """
    evaluations, scored = (
        'pathgauge_evaluations_total{judge=""' + more + "}"
        for more in ("", ',outcome=~"pass|fail|informational"')
    )
    yield Record(f"{_INVOCATIONS}:increase1h", added(AGENT, "pathgauge_invocations_total", "1h"))
    yield Record(f"{_EVALUATIONS}:increase1h", added(AGENT, evaluations, "1h"))
    yield Record(f"{_SCORED}:increase1h", added(AGENT, scored, "1h"))


def _drops(choices: Choices) -> Iterator[Record]:
    """The share of evaluations with a score, beside that of the day before. Invocations count, as
    their evaluations have one cause.
    """
    now, scored, evaluated = (
        f"{name}:increase1h" for name in (_INVOCATIONS, _SCORED, _EVALUATIONS)
    )
    before, scored_before, evaluated_before = (
        summed(name, "1d", "1d") for name in (now, scored, evaluated)
    )
    yield Record(_DROP, lines(f"{scored_before} / {evaluated_before}", f"- {scored} / {evaluated}"))
    pooled = lines(f"({scored} + {scored_before})", f"/ ({evaluated} + {evaluated_before})")
    yield Record(_POOLED, f"clamp({pooled}, 0, 1)")
    enough = [f"and {count} >= {choices.min_samples}" for count in (now, before)]
    yield Record(_DROP_ERROR, lines(standard_error(_POOLED, now, before), *enough))


def _silence(choices: Choices) -> Alert:
    """What was never evaluated is silent since the collector that runs longest was started."""
    expected = f"max by ({_SCENARIO}) (pathgauge_expected_interval_seconds)"
    running = f'(time() - min by (job) (process_start_time_seconds{{job="{choices.job}"}}))'
    return Alert(
        "PathgaugeNoRecentEvaluations",
        lines(
            "(",
            f"  time() - max by ({_SCENARIO}) (pathgauge_last_evaluation_timestamp_seconds)",
            f"  or 0 * {expected} + on (job) group_left () {running}",
            ")",
            f"> on ({_SCENARIO}) {expected}",
        ),
        "warning",
        "5m",
        "A scenario has not been evaluated for longer than expected.",
        'Scenario "{{ $labels.scenario }}"{{ with $labels.tenant }} of tenant "{{ . }}"{{ end }} '
        "had no score for {{ $value | humanizeDuration }}.",
    )


def _unmatched(choices: Choices) -> Alert:
    """Traffic that names no scenario is not meant: most of production does not."""
    unmatched = 'pathgauge_invocations_unmatched_total{reason!~"no_scenario_id|unexpected_turn"}'
    named = (
        f"sum by (job) (increase({unmatched}[1h]) or"
        ' increase(pathgauge_invocations_total{match="scenario"}[1h]))'
    )
    return Alert(
        "PathgaugeUnmatchedScenarios",
        lines(
            f"{added('job, reason', unmatched, '1h')} / on (job) group_left () {named} > 0.1",
            f"and on (job) {named} >= {choices.min_samples}",
        ),
        "warning",
        "15m",
        "Invocations name scenarios that have no reference.",
        f"{_PERCENT} of the invocations that name a scenario have no reference ({{{{ $labels.reason"
        " }}).",
    )


def _drop(choices: Choices) -> Alert:
    """Beside the fall: an agent that is seen, and of which nothing at all has a score."""
    return Alert(
        "PathgaugeCoverageDrop",
        lines(
            f"({_DROP} > {_MIN_DROP:g} and {_DROP} > {choices.sigmas:g} * {_DROP_ERROR})",
            f"or (1 - {_SCORED}:increase1h / {_EVALUATIONS}:increase1h == 1 and"
            f" {_INVOCATIONS}:increase1h >= {choices.min_samples})",
        ),
        "warning",
        "15m",
        "Less of an agent's traffic gets scores than before, or none.",
        f"The share of evaluations of {AGENT_NAME} that give a score is lower by {_PERCENT}.",
        keeps=True,
    )


def _content(choices: Choices) -> Alert:
    total = _attempted("1h")
    missing = added(
        "job, metric, reason", 'pathgauge_not_evaluated_total{reason=~".+_not_recorded"}', "1h"
    )
    return Alert(
        "PathgaugeContentMissing",
        lines(
            f"{missing} / on (job, metric) group_left () {total} > 0.25",
            f"and on (job, metric) {total} >= {choices.min_samples}",
        ),
        "warning",
        "30m",
        "A metric cannot be computed, as the spans do not hold what it compares.",
        f"{_PERCENT} of the evaluations of {{{{ $labels.metric }}}} gave no score ({{{{"
        " $labels.reason }}).",
    )


def _telemetry(choices: Choices) -> Alert:
    total = added("job, dialect", "pathgauge_invocations_read_total", "1h")
    lacking = added(
        "job, dialect, flag", f'pathgauge_invocation_flags_total{{flag=~"{_LACKS}"}}', "1h"
    )
    return Alert(
        "PathgaugeTelemetryIncomplete",
        lines(
            f"{lacking} / on (job, dialect) group_left () {total} > 0.25",
            f"and on (job, dialect) {total} >= {choices.min_samples}",
        ),
        "info",
        "30m",
        "The telemetry of many invocations lacks something.",
        f"{_PERCENT} of the invocations in dialect {{{{ $labels.dialect }}}} are flagged {{{{"
        " $labels.flag }}.",
    )


def _errors() -> Alert:
    failed = added("job, metric", 'pathgauge_evaluations_total{outcome="error"}', "30m")
    return Alert(
        "PathgaugeEvaluationErrors",
        lines(f"{failed} / {_attempted('30m')} > 0.05", f"and {failed} >= 3"),
        "warning",
        "10m",
        "A scorer fails.",
        f"{_PERCENT} of the evaluations of {{{{ $labels.metric }}}} ended in an error of the"
        " scorer.",
    )


def _attempted(window: str) -> str:
    """The evaluations of each metric, without those that no judge was asked for, to judge a share
    of the traffic or to keep a budget.
    """
    total = added("job, metric", "pathgauge_evaluations_total", window)
    left_out = added(
        "job, metric", 'pathgauge_not_evaluated_total{reason=~"not_sampled|budget"}', window
    )
    return f"({total} - ({left_out} or 0 * {total}))"


def _judges() -> Iterator[Alert]:
    """What was not sampled, and what has nobody to judge it, is as it was chosen to be."""
    yield _unanswered(
        "PathgaugeJudgeErrors",
        _JUDGE_FAILURES,
        _JUDGE_FAILURES,
        "The model that judges does not answer, or not usably.",
        f"{_PERCENT} of what {{{{ $labels.metric }}}} was to judge has no verdict ({{{{"
        " $labels.reason }}).",
    )
    yield _unanswered(
        "PathgaugeJudgeBudgetUsedUp",
        "budget",
        f"budget|{_JUDGE_FAILURES}",
        "The judges have used up a budget, so that they judge less than they should.",
        f"{_PERCENT} of what {{{{ $labels.metric }}}} was to judge has no verdict, as a budget is"
        " used up.",
    )


def _unanswered(name: str, reasons: str, possible: str, summary: str, description: str) -> Alert:
    """Of what a judge was to judge, that is its verdicts and what has none for a `possible` reason."""
    verdicts = 'pathgauge_evaluations_total{judge!="",outcome=~"pass|fail|informational"}'
    left, unanswered = (
        f'pathgauge_not_evaluated_total{{reason=~"{named}"}}' for named in (possible, reasons)
    )
    due = f"sum by (job, metric) (increase({verdicts}[30m]) or increase({left}[30m]))"
    without = added("job, metric, reason", unanswered, "30m")
    expr = lines(f"{without} / on (job, metric) group_left () {due} > 0.1", f"and {without} >= 3")
    return Alert(name, expr, "warning", "15m", summary, description)

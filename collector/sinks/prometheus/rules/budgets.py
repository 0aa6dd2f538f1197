"""Rules about objectives: more verdicts fail than the wanted share of passes leaves room for.

The burn rate is the share of failures over the share that the objective allows. It cannot exceed 1
/ (1 - objective), so that the 14.4 of services never comes; 6, 3 and 1 do. Each pair of windows is
that of the Site Reliability Workbook: the long one says that it matters, the short one that it
still goes on. 6 stands twice, over an hour for busy scenarios, over six for those that are
evaluated seldom.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pathgauge.collector.config.criteria.objectives import BURN_RATE_FACTORS
from pathgauge.collector.sinks.prometheus.rules.expressions import SERIES, WHO, added, lines, summed
from pathgauge.collector.sinks.prometheus.rules.options import Choices
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group, Record, Severity

_FAILURES, _VERDICTS = (
    "agent_scenario_metric:pathgauge_failures",
    "agent_scenario_metric:pathgauge_verdicts",
)
_BUDGET = "agent_scenario_metric:pathgauge_objective:budget"
_FAST, _MEDIUM, _SLOW = BURN_RATE_FACTORS


class _Burn(NamedTuple):
    factor: float
    long: str
    short: str
    severity: Severity


_BURNS = (
    _Burn(_FAST, "1h", "5m", "critical"),
    _Burn(_FAST, "6h", "30m", "critical"),
    _Burn(_MEDIUM, "1d", "2h", "warning"),
    _Burn(_SLOW, "3d", "6h", "warning"),
)


def groups(choices: Choices) -> Iterator[Group]:
    """The rules, what is slow apart."""
    yield Group("pathgauge.budgets.rules", tuple(_counts()))
    yield Group("pathgauge.budgets.history.rules", tuple(_long_counts()), slow=True)
    yield Group("pathgauge.budgets.alerts", tuple(_alert(burn, choices) for burn in _BURNS))


def _counts() -> Iterator[Record]:
    yield Record(_BUDGET, f"1 - max by ({SERIES}) (pathgauge_objective)")
    for window in ("5m", "30m", "1h", "2h", "6h"):
        yield Record(
            f"{_FAILURES}:increase{window}",
            added(SERIES, 'pathgauge_evaluations_total{outcome="fail"}', window),
        )
        yield Record(
            f"{_VERDICTS}:increase{window}",
            added(SERIES, 'pathgauge_evaluations_total{outcome=~"pass|fail"}', window),
        )
        yield _ratio(window)


def _long_counts() -> Iterator[Record]:
    for window in ("1d", "3d"):
        for counted in (_FAILURES, _VERDICTS):
            yield Record(f"{counted}:increase{window}", summed(f"{counted}:increase1h", window))
        yield _ratio(window)


def _ratio(window: str) -> Record:
    return Record(
        f"{_FAILURES}:ratio{window}",
        f"{_FAILURES}:increase{window} / ({_VERDICTS}:increase{window} > 0)",
    )


def _alert(burn: _Burn, choices: Choices) -> Alert:
    """It waits for verdicts enough to tell the share of failures from the one allowed."""
    most = f"{burn.factor:g} * {_BUDGET}"
    chance = (
        f"{choices.sigmas:g} * sqrt({_BUDGET} * (1 - {_BUDGET}) / {_VERDICTS}:increase{burn.long})"
    )
    times = f"{burn.factor:g} times what " if burn.factor > 1 else ""
    return Alert(
        "PathgaugeFailureBudgetBurn",
        lines(
            f"{_FAILURES}:ratio{burn.long} > {most}",
            f"and {_FAILURES}:ratio{burn.short} > {most}",
            f"and {_FAILURES}:ratio{burn.long} > {_BUDGET} + {chance}",
            f"and {_VERDICTS}:increase{burn.long} >= {choices.min_samples}",
        ),
        burn.severity,
        "2m",
        "Failures use up what an objective allows.",
        f"{{{{ $value | humanizePercentage }}}} of the verdicts on {WHO} failed in {burn.long},"
        f" more than {times}the objective allows.",
        {"window": burn.long},
        keeps=True,
    )

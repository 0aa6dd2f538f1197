"""PromQL that several rules have in common: names of series in, expressions out.

All rules add up over collectors first and compare then, as every collector exports thresholds and
none sees all traffic. They keep `job`, so that two installations in one Prometheus stay apart;
`tenant`, which is empty where there is one tenant only; and `judge`, which is empty where no model
judges, so that each judge is compared with itself alone: another one scores otherwise.
"""

from __future__ import annotations

AGENT = "job, tenant, agent"
VERSION = "job, tenant, agent, agent_version"
SERIES = "job, tenant, agent, scenario, metric, judge"
VERSION_SERIES = "job, tenant, agent, agent_version, scenario, metric, judge"

SIGN = "metric:pathgauge_metric_info:sign"
"""1 where more is better, else -1."""


def added(labels: str, selector: str, window: str) -> str:
    """By how much counters grew, all collectors together."""
    return f"sum by ({labels}) (increase({selector}[{window}]))"


def summed(hourly: str, window: str, offset: str = "") -> str:
    """What a series of hourly increases adds up to. It reads 24 points a day, and lags behind by up
    to an hour.
    """
    return f"sum_over_time({hourly}[{window}:1h]{f' offset {offset}' if offset else ''})"


def standard_error(mean: str, *counts: str) -> str:
    """Of a difference of means over so many values from 0 to 1 each, at most.

    No distribution between 0 and 1 with a given mean varies more than that of a coin (Bhatia and
    Davis): mean * (1 - mean).
    """
    return f"sqrt({mean} * (1 - {mean}) * ({' + '.join(f'1 / {count}' for count in counts)}))"


def lines(*parts: str) -> str:
    """An expression over several lines."""
    return "\n".join(parts)


AGENT_NAME = 'agent "{{ $labels.agent }}"{{ with $labels.tenant }} of tenant "{{ . }}"{{ end }}'
METRIC_NAME = "{{ $labels.metric }}{{ with $labels.judge }} by {{ . }}{{ end }}"
WHO = f'{METRIC_NAME} of {AGENT_NAME} in scenario "{{{{ $labels.scenario }}}}"'
"""Words of a description: which series it is about."""

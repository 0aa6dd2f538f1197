"""The lines of the gate's table that sum up several scenarios: criteria with `over`, and the mean
and deviation of all scores of each criterion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.offline.aggregates import AggregateLine, Overall
from pathgauge.collector.offline.gate import Gate

ALL = "*"
"""In a pipe: all agents, or all scenarios."""


def overall_of(gate: Gate) -> tuple[Overall, ...]:
    """The overall lines of criteria that have several lines; others would repeat their only one."""
    lines = Counter(line.criterion.name for line in gate.lines)
    return tuple(one for one in gate.overall if lines[one.metric] > 1)


def plain_rows(gate: Gate) -> Iterator[tuple[str, ...]]:
    """The rows for a pipe, with the columns of the report."""
    for line in gate.aggregates:
        agent, scenario = line.agent or ALL, line.scenario or ALL
        threshold = _optional(line.criterion.threshold)
        score, deviation, samples = "", "", "0"
        if line.aggregate is not None:
            score, samples = number(line.aggregate.value), str(line.aggregate.samples)
            deviation = number(line.aggregate.deviation)
        yield (
            *(agent, scenario, line.criterion.name, score, deviation, threshold),
            *(samples, samples, verdict_text(line.verdict), ""),
        )
    for one in overall_of(gate):
        samples = str(one.samples)
        yield (
            *(ALL, ALL, one.metric, number(one.mean), _optional(one.deviation), ""),
            *(samples, samples, "", ""),
        )


def aggregate_cells(line: AggregateLine) -> tuple[str, ...]:
    """The cells of a table row on a terminal."""
    threshold = _optional(line.criterion.threshold)
    verdict = verdict_text(line.verdict)
    if line.aggregate is None:
        return f"  {line.criterion.name}", "", threshold, "0", verdict
    one = line.aggregate
    score = f"{number(one.value)} ({number(one.low)} to {number(one.high)})"
    return f"  {line.criterion.name}", score, threshold, str(one.samples), verdict


def overall_cells(one: Overall) -> tuple[str, ...]:
    """The cells of a table row on a terminal."""
    score = number(one.mean)
    if one.deviation is not None:
        score = f"{score} ±{number(one.deviation)}"
    return f"  {one.metric}", score, "", str(one.samples), ""


def _optional(value: float | None) -> str:
    return "" if value is None else number(value)

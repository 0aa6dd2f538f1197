"""The results of `pathgauge score --json`: one object for each invocation, and the verdict of the
gate as the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pathgauge.collector.cli.output.details import failures
from pathgauge.collector.cli.output.json_output import evaluation_object
from pathgauge.collector.offline.aggregates import AggregateLine
from pathgauge.collector.offline.coverage import Coverage
from pathgauge.collector.offline.gate import Gate
from pathgauge.collector.offline.gate_lines import Line
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import Json


def result_lines(
    replayed: Sequence[Replayed], gate: Gate, *, failed_only: bool
) -> Iterator[dict[str, Json]]:
    """All invocations in the order of the files, or only those that failed; then the verdict."""
    if failed_only:
        for source, evaluation in failures(replayed, gate):
            yield evaluation_object(evaluation, source)
    else:
        for one in replayed:
            for evaluation in one.evaluations:
                yield evaluation_object(evaluation, one.source)
    yield gate_object(gate)


def gate_object(gate: Gate) -> dict[str, Json]:
    """The verdict, its reasons, and what was not scored."""
    return {
        "gate": {
            "passed": gate.passed,
            "reasons": list(gate.reasons),
            "min_coverage": gate.requirements.min_coverage,
            "coverage": {one.criterion: _coverage(one) for one in gate.coverage},
            "required_scenarios": sorted(gate.requirements.scenarios),
            "missing_scenarios": list(gate.missing),
            "scenarios_not_run": list(gate.not_run),
            "without_reference": dict(gate.unmatched),
            "incomplete": list(gate.incomplete),
            "lines": [_line(line) for line in gate.lines],
            "aggregates": [_aggregate(line) for line in gate.aggregates],
            "overall": [asdict(one) for one in gate.overall],
        }
    }


def _coverage(one: Coverage) -> dict[str, Json]:
    return {
        "share": one.share,
        "invocations": one.invocations,
        "scored": one.scored,
        "not_scored": dict(one.unscored),
    }


def _aggregate(line: AggregateLine) -> dict[str, Json]:
    summary = line.aggregate
    return {
        "over": line.aggregation.over,
        "aggregate": line.aggregation.measure,
        "agent": line.agent or None,
        "scenario": line.scenario or None,
        "criterion": line.criterion.name,
        "verdict": line.verdict,
        "score": None if summary is None else summary.value,
        "confidence_low": None if summary is None else summary.low,
        "confidence_high": None if summary is None else summary.high,
        "threshold": line.criterion.threshold,
        "scored": 0 if summary is None else summary.samples,
    }


def _line(line: Line) -> dict[str, Json]:
    return {
        "agent": line.agent,
        "scenario": line.scenario or None,
        "criterion": line.criterion.name,
        "verdict": line.verdict,
        "score": line.score,
        "deviation": line.deviation,
        "threshold": line.criterion.threshold,
        "invocations": line.invocations,
        "scored": line.evaluated,
        "not_scored": dict(line.unscored),
        "explanations": list(line.explanations),
        "traces": list(line.traces),
        "duration_s": line.duration_s,
    }
